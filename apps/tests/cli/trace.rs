use std::fs;
use std::path::Path;

use tempfile::tempdir;

use crate::{error_of, stdout_of, talpf, talpf_with, value};

const VARIANTS: [&str; 12] = [
    "serial",
    "fork-join",
    "lpf",
    "talpf-default",
    "talpf-cached",
    "talpf-cached-barrier",
    "talpf-cached-ack",
    "talpf-raw-cached",
    "talpf-msg",
    "talpf-get",
    "tampi",
    "tampi-blocking",
];

fn run(variant: &str, folder: &Path) -> String {
    let folder = folder.to_str().unwrap();
    let small = "jacobi --rows 37 --cols 23 --block 8 --steps 9 --ranks 3 --variant";
    let mut arguments: Vec<&str> = small.split(' ').collect();
    arguments.extend([variant, "--trace", folder]);
    stdout_of(&talpf_with(&arguments))
}

fn check(path: &Path) -> std::process::Output {
    talpf_with(&["trace", "check", path.to_str().unwrap()])
}

#[test]
fn trace_of_every_variant_is_clean() {
    let folder = tempdir().unwrap();
    for variant in VARIANTS {
        let folder = folder.path().join("new").join(variant);
        let text = run(variant, &folder);
        let prv = folder.join("jacobi.prv");
        let shown = value(&text, "trace");
        assert!(shown.starts_with(prv.to_str().unwrap()), "{shown}");
        assert!(shown.ends_with(" 0 dropped)"), "{shown}");

        let summary = stdout_of(&check(&prv));
        assert!(summary.starts_with("0 errors, 0 warnings; "), "{summary}");
        assert_eq!(summary.lines().count(), 1);
        let comments = fs::read_to_string(&prv).unwrap();
        assert!(comments.contains(&format!("# jacobi {variant}\n")));
        assert!(comments.contains("# rows 37, cols 23, block 8, steps 9\n"));
        let ranks = if ["serial", "fork-join"].contains(&variant) { "1 rank" } else { "3 ranks" };
        assert!(comments.contains(&format!("# {ranks}, ")));
    }
}

#[test]
fn second_trace_replaces_the_first() {
    let folder = tempdir().unwrap();
    run("talpf-get", folder.path());
    run("serial", folder.path());
    let prv = fs::read_to_string(folder.path().join("jacobi.prv")).unwrap();
    assert!(prv.contains("# jacobi serial\n"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn broken_trace_is_reported_line_by_line_and_fails() {
    let folder = tempdir().unwrap();
    run("talpf-msg", folder.path());
    let prv = folder.path().join("jacobi.prv");
    let text = fs::read_to_string(&prv).unwrap();
    fs::write(&prv, text + "9:1:1:1:1:0\n").unwrap();

    let output = check(&prv);
    assert!(!output.status.success());
    let found = String::from_utf8(output.stdout).unwrap();
    let finding = found.lines().next().unwrap();
    assert!(finding.starts_with(prv.to_str().unwrap()), "{finding}");
    assert!(finding.contains(": error: "), "{finding}");
    let last = found.lines().last().unwrap();
    assert!(last.starts_with("1 error, 0 warnings; "), "{last}");
    let error = String::from_utf8(output.stderr).unwrap();
    let expected = format!("error: {} has 1 error and 0 warnings\n", prv.display());
    assert_eq!(error, expected);
}

#[test]
fn file_that_is_no_trace_is_an_error() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("heat.prv");
    for content in [&b""[..], b"\x89PNG\r\n", b"2\n0 0 1 2.5\n", &[0; 5000]] {
        fs::write(&path, content).unwrap();
        let error = error_of(&check(&path));
        let expected = format!("{} is not a Paraver trace: ", path.display());
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn trace_that_cannot_be_read_is_an_error() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("missing.prv");
    let error = error_of(&check(&path));
    let expected = format!("cannot read the trace {}: ", path.display());
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn folder_is_checked_with_all_that_is_in_it() {
    let folder = tempdir().unwrap();
    let error = error_of(&check(folder.path()));
    assert!(error.contains(" is not a Paraver trace: no file in it ends in .prv"), "{error}");
    run("serial", folder.path());
    let text = stdout_of(&check(folder.path()));
    let prv = folder.path().join("jacobi.prv");
    let expected = format!("{}:\n0 errors, 0 warnings; ", prv.display());
    assert!(text.starts_with(&expected) && text.lines().count() == 2, "{text}");
    let other = folder.path().join("other.row");
    fs::write(&other, "LEVEL THREAD SIZE 2\nr0 w0\n").unwrap();
    let error = String::from_utf8(check(folder.path()).stderr).unwrap();
    let expected = format!("error: {} has 1 error and 0 warnings\n", folder.path().display());
    assert_eq!(error, expected);
}

#[test]
fn trace_needs_a_command_and_check_a_file() {
    assert!(error_of(&talpf("trace")).contains("subcommand"));
    assert!(error_of(&talpf("trace chek x.prv")).contains("'chek'"));
    assert!(error_of(&talpf("trace check")).contains("<FILE.prv>"));
    assert!(error_of(&talpf("trace check a.prv b.prv")).contains("'b.prv'"));
}

#[test]
fn summary_has_what_a_run_did() {
    let folder = tempdir().unwrap();
    run("talpf-cached", folder.path());
    let prv = folder.path().join("jacobi.prv");
    let summary = |options: &[&str]| {
        let arguments = [&["trace", "summary", prv.to_str().unwrap()], options].concat();
        talpf_with(&arguments)
    };
    let text = stdout_of(&summary(&["--json"]));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    // Of 9 steps on 3 ranks: 4 halos a step, each of 23 cells.
    assert_eq!(json["messages"]["kinds"]["put"], 36);
    assert_eq!(json["messages"]["bytes"], 36 * 23 * 8);
    let rounds = json["ranks"].as_array().unwrap().iter().map(|rank| rank["rounds"].as_u64());
    assert_eq!(rounds.map(Option::unwrap).collect::<Vec<_>>(), [10, 10, 10]);
    assert_eq!(json["tasks"]["main"]["tasks"], 3);
    let tables = stdout_of(&summary(&["--explain"]));
    assert!(tables.contains("parallel efficiency") && tables.contains("load balance "), "{tables}");

    let error = error_of(&summary(&["--json", "--explain"]));
    assert!(error.contains("--explain"), "{error}");
    fs::write(&prv, "#Paraver (1/1/2026 at 00:00):5_ns:0:1:1(1:0)\n1:0:1:1:1:0:9:1\n").unwrap();
    let error = error_of(&summary(&[]));
    assert!(error.contains("jacobi.prv:2: time 9 is beyond the duration, 5"), "{error}");
}

#[test]
fn runs_are_compared() {
    let folder = tempdir().unwrap();
    let [first, second] = ["cached", "default"].map(|mode| {
        run(&format!("talpf-{mode}"), &folder.path().join(mode));
        folder.path().join(mode).join("jacobi.prv").to_str().unwrap().to_owned()
    });
    let diff = |arguments: &[&str]| talpf_with(&[&["trace", "diff"], arguments].concat());
    let json = stdout_of(&diff(&[&first, &second, "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    // A body that helps runs in several slices.
    assert!(json["tasks"]["main"]["first"]["count"].as_u64().unwrap() >= 3);
    assert_eq!(json["syncs"]["cached"]["is_marked"], true);
    assert_eq!(json["syncs"]["cached"]["second"]["count"], 0);
    let text = stdout_of(&diff(&[&first, &first, "--explain"]));
    assert!(text.contains("cost of syncs") && text.contains("spread   "), "{text}");
    let json = stdout_of(&diff(&[&first, &first, "--json"]));
    assert!(!json.contains("\"is_marked\": true"), "{json}");

    assert!(error_of(&diff(&[&first])).contains("<B.prv>"));
    let missing = folder.path().join("missing.prv");
    let error = error_of(&diff(&[&first, missing.to_str().unwrap()]));
    assert!(
        error.starts_with("cannot read the trace ") && error.contains("missing.prv"),
        "{error}"
    );
}

#[test]
fn pictures_of_a_run() {
    let folder = tempdir().unwrap();
    run("talpf-cached", folder.path());
    let prv = folder.path().join("jacobi.prv");
    let picture = folder.path().join("picture.png");
    let render = |output: &Path, options: &str| {
        let mut arguments = vec!["trace", "render", prv.to_str().unwrap(), "-o"];
        arguments.push(output.to_str().unwrap());
        arguments.extend(options.split_whitespace());
        talpf_with(&arguments)
    };
    stdout_of(&render(&picture, ""));
    assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
    let picture = folder.path().join("picture.svg");
    stdout_of(&render(&picture, "--view task-type --rows rank --from 1us"));
    let text = fs::read_to_string(&picture).unwrap();
    assert!(text.contains(">jacobi.prv: Task type<") && text.contains(">rank 2<"), "{text}");
    stdout_of(&render(&picture, "--view bytes-matrix"));
    let text = fs::read_to_string(&picture).unwrap();
    assert!(text.contains(": Bytes from rank to rank<") && text.contains(">to 2<"), "{text}");

    for (output, options, named) in [
        ("picture.gif", "", "ends in .svg or .png"),
        (
            "none.svg",
            "--view colour",
            "no view is called `colour`; there are bandwidth, bytes-in-flight",
        ),
        ("none.svg", "--from 5", "time unit needed"),
        ("none.svg", "--from 100s", "there is nothing between 100000000000 ns"),
    ] {
        let path = folder.path().join(output);
        let error = error_of(&render(&path, options));
        assert!(error.contains(named), "{error}");
        assert!(!path.exists(), "{output}");
    }
}

/// Returns the columns that the cells of an SVG of rows fill in row 0, and the number of all.
fn filled_columns(timeline: &str) -> (usize, usize) {
    let columns = timeline.split("viewBox=\"0 0 ").nth(1).unwrap().split(' ').next().unwrap();
    let runs = timeline.split('M').skip(1).filter_map(|run| run.split_once(' '));
    let of_first = runs.filter_map(|(_, run)| run.strip_prefix("0h")?.split_once('v'));
    let filled = of_first.filter_map(|(length, _)| length.parse::<usize>().ok());
    (filled.sum(), columns.parse().unwrap())
}

#[test]
fn report_is_a_page_of_one_file() {
    let folder = tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let small =
        "jacobi --rows 37 --cols 23 --block 8 --steps 9 --ranks 3 --workers 1 --report --trace";
    let arguments: Vec<&str> = small.split(' ').chain([path]).collect();
    let text = stdout_of(&talpf_with(&arguments));
    let page = folder.path().join("report.html");
    assert_eq!(value(&text, "report"), page.to_str().unwrap());
    let page = fs::read_to_string(page).unwrap();

    let prv = folder.path().join("jacobi.prv");
    let summary = stdout_of(&talpf_with(&["trace", "summary", prv.to_str().unwrap()]));
    assert!(page.contains(&format!("<pre>{}</pre>", summary.replace('<', "&lt;"))), "{page}");
    for outside in ["http", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let timelines: Vec<&str> = page.split("<section").skip(1).collect();
    assert_eq!(timelines.len(), 2);
    for (timeline, label) in timelines.into_iter().zip(["Running", "jacobi"]) {
        assert!(timeline.contains("r2 w0") && timeline.contains(label), "{timeline}");
        let (filled, columns) = filled_columns(timeline);
        assert!(filled > 0 && filled <= columns, "{filled} of {columns} columns");
    }

    let error = error_of(&talpf_with(&["jacobi", "--report"]));
    assert!(error.contains("--trace"), "{error}");
}

#[test]
fn other_forms_of_a_run() {
    let folder = tempdir().unwrap();
    run("talpf-cached", folder.path());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let prv = path("jacobi.prv");
    let convert = |form: &str, out: &str| {
        talpf_with(&["trace", "convert", &prv, "--to", form, "-o", &path(out)])
    };
    assert_eq!(
        stdout_of(&convert("perfetto", "new/run.pftrace")),
        format!("file {}\n", path("new/run.pftrace"))
    );
    stdout_of(&convert("chrome", "run.json"));
    let json = fs::read_to_string(path("run.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    assert_eq!(events.iter().filter(|event| event["ph"] == "f").count(), 36);
    let files = stdout_of(&convert("csv", "tables"));
    assert_eq!(files.lines().count(), 3, "{files}");
    let messages = fs::read_to_string(path("tables/messages.csv")).unwrap();
    assert_eq!(messages.lines().count(), 1 + 36);
    let text = stdout_of(&convert("ovni", "new/streams"));
    assert_eq!(value(&text, "folder"), path("new/streams"));
    assert!(text.contains("36 messages and ") && text.contains("left out"), "{text}");
    assert!(Path::new(&path("new/streams/loom.node1/proc.1/thread.1/stream.obs")).is_file());

    for (form, out, named) in [
        ("chrome", "jacobi.prv", "is an input, and would be replaced"),
        ("perfetto", "jacobi.pcf", "is an input, and would be replaced"),
        ("perfetto", "tables", "tables: not a file"),
        ("csv", "run.json", "run.json"),
        ("ovni", "run.json", "run.json: not a folder"),
        ("ovni", "tables", "tables: the folder is not empty"),
        ("otf2", "x", "possible values: perfetto, chrome, csv, ovni"),
    ] {
        let error = error_of(&convert(form, out));
        assert!(error.contains(named), "{error}");
    }
    fs::write(&prv, "#Paraver (1/1/2026 at 00:00):5_ns:0:1:1(1:0)\n1:0:1:1:1:0:9:1\n").unwrap();
    let error = error_of(&convert("chrome", "run.json"));
    assert!(error.contains("nothing is converted: ") && error.contains(":2: time 9"), "{error}");
}

#[test]
fn parts_of_a_run_are_joined_again() {
    let folder = tempdir().unwrap();
    run("talpf-cached", folder.path());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let prv = path("jacobi.prv");
    let (first, second, whole) = (path("new/1.prv"), path("new/2.prv"), path("whole.prv"));
    let summary = stdout_of(&talpf_with(&["trace", "summary", &prv, "--json"]));
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let half = summary["duration_ns"].as_u64().unwrap() / 2;
    let edge = format!("{half}ns");
    stdout_of(&talpf_with(&["trace", "cut", &prv, "--to", &edge, "-o", &first]));
    let text = stdout_of(&talpf_with(&["trace", "cut", &prv, "--from", &edge, "-o", &second]));
    assert_eq!(text, format!("trace {second}\n"));
    stdout_of(&talpf_with(&["trace", "merge", &first, &second, "-o", &whole]));
    for file in [&first, &second, &whole] {
        let summary = stdout_of(&check(Path::new(file)));
        assert!(summary.starts_with("0 errors, 0 warnings; "), "{summary}");
    }
    let states = |file: &str| {
        let text = stdout_of(&talpf_with(&["trace", "summary", file, "--json"]));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        (json["efficiency"].clone(), json["tasks"].clone(), json["ranks"][1]["states_ns"].clone())
    };
    assert_eq!(states(&whole), states(&prv));

    for (arguments, named) in [
        (vec!["cut", &prv, "-o", &prv], "is an input, and would be replaced"),
        (vec!["cut", &prv, "-o", &path("x.csv")], "the name of a trace ends in .prv"),
        (vec!["cut", &prv, "--from", "9s", "-o", &whole], "nothing between 9000000000 ns"),
        (vec!["merge", &first, &first, "-o", &path("x.prv")], &format!("until {half} ns, and ")),
        (vec!["merge", "-o", &whole], "<FILE.prv>"),
    ] {
        let error = error_of(&talpf_with(&[&["trace"], arguments.as_slice()].concat()));
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn slow_rank_costs_load_balance_and_the_other_rank_waits_for_communication() {
    let folder = tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let run =
        "jacobi --size 256 --block 64 --steps 10 --ranks 2 --workers 2 --slow-rank 1:20 --trace";
    let arguments: Vec<&str> = run.split(' ').chain([path]).collect();
    stdout_of(&talpf_with(&arguments));
    let prv = folder.path().join("jacobi.prv");
    stdout_of(&check(&prv));
    let text = stdout_of(&talpf_with(&["trace", "summary", prv.to_str().unwrap(), "--json"]));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["limited_by"], "load balance", "{text}");
    assert!(json["timed_ns"].as_u64().unwrap() > 0, "{text}");
    let most = |rank: usize| {
        let causes = json["ranks"][rank]["idle_ns"].as_object().unwrap();
        causes.iter().max_by_key(|(_, time)| time.as_u64()).unwrap().0.clone()
    };
    assert_eq!([most(0), most(1)], ["communication", "slow core"], "{text}");
    let trace = fs::read_to_string(&prv).unwrap();
    let step = |number: usize| trace.contains(&format!(":95000026:{number}\n"));
    assert!(step(1) && step(10) && !step(11), "every step is counted once");
}

#[test]
fn critical_path_of_a_simulated_run_has_a_task_and_a_message_each_step() {
    let folder = tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let run = "jacobi --size 256 --block 64 --steps 20 --ranks 2 --simulate hdr-infiniband \
               --cost jacobi=1.5ns --cores-per-rank 2 --trace-edges --trace";
    let arguments: Vec<&str> = run.split_whitespace().chain([path]).collect();
    stdout_of(&talpf_with(&arguments));
    let prv = folder.path().join("jacobi.prv");
    stdout_of(&check(&prv));
    let text = stdout_of(&talpf_with(&["trace", "summary", prv.to_str().unwrap(), "--json"]));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let critical = &json["critical_path"];
    assert_eq!(critical["tasks"]["jacobi"]["count"], 20, "{critical}");
    assert_eq!(critical["messages"]["count"], 19, "{critical}");
    assert_eq!(critical["most"], "jacobi", "{critical}");
    let length = |of: &serde_json::Value, field: &str| of[field].as_u64().unwrap();
    assert!(length(critical, "length_ns") > length(&json, "duration_ns") * 95 / 100, "{text}");
}

/// Runs jacobi with a trace that has these options. Returns the folder, the text of the trace and the output.
fn run_with(options: &str) -> (tempfile::TempDir, String, std::process::Output) {
    let folder = tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let run = "jacobi --size 64 --block 16 --steps 30 --ranks 2 --trace";
    let arguments: Vec<&str> = run.split(' ').chain([path]).chain(options.split(' ')).collect();
    let output = talpf_with(&arguments);
    assert!(output.status.success(), "{output:?}");
    let trace = fs::read_to_string(folder.path().join("jacobi.prv")).unwrap();
    (folder, trace, output)
}

#[test]
fn a_trace_that_is_too_long_keeps_its_begin_or_its_end() {
    for (keep, first, last) in [("first", true, false), ("last", false, true)] {
        // Of two workers one may have so little to do that its records are not too many.
        let options = format!("--workers 1 --trace-limit 20K --trace-keep {keep}");
        let (_folder, trace, output) = run_with(&options);
        assert!(String::from_utf8_lossy(&output.stderr).contains("warning: "), "{output:?}");
        let has_step = |step: &str| trace.contains(&format!(":95000026:{step}\n"));
        assert_eq!((has_step("1"), has_step("30")), (first, last), "{keep}");
        assert!(trace.contains(" records dropped, "), "{keep}");
    }
}

#[test]
fn supersteps_and_windows_are_kept_alone() {
    let (folder, trace, _) = run_with("--workers 2 --trace-steps 10..20");
    stdout_of(&check(&folder.path().join("jacobi.prv")));
    // Round 9 ends where round 10 begins, at both ranks.
    let ended = |round: usize| trace.matches(&format!(":95000005:{}:", round + 1)).count();
    assert_eq!([8, 10, 19].map(ended), [0, 2, 2], "{trace}");
    assert!(ended(22) < 2, "the other rank was at most two rounds ahead");

    let (folder, trace, _) = run_with("--workers 2 --trace-window 1h..");
    stdout_of(&check(&folder.path().join("jacobi.prv")));
    assert!(trace.contains("# recorded from 3600000000000 ns on only\n"), "{trace}");
    for (options, error) in [
        ("--trace-steps 1..2", "--trace"),
        ("--trace t --trace-steps 2..1", "the range is empty"),
        ("--trace t --trace-steps 1..2 --trace-window 1s..2s", "cannot be used with"),
        ("--trace t --trace-limit 1X", "expected a number of bytes"),
        ("--trace t --trace-steps 1..2 --variant tampi", "tampi"),
    ] {
        let found = error_of(&talpf(&format!("jacobi --size 64 {options}")));
        assert!(found.contains(error), "{found}");
    }
}
