//! Runs in virtual time: `--simulate`.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

use crate::{error_of, stdout_of, talpf, talpf_with, value, variants_of};

/// Small runs whose sizes do not divide, of applications that run in virtual time.
const SMALL: [&str; 6] = [
    "jacobi --rows 37 --cols 23 --block 8 --steps 9",
    "gauss-seidel --rows 37 --cols 23 --block 8 --single-blocks --steps 9",
    "nbody --particles 101 --block 10 --steps 3",
    "matmul --size 61 --block 8 --iterations 3",
    "kmeans --points 1001 --clusters 7 --block 100 --steps 3",
    "mandelbrot --size 41 --limit 60 --block 3 --steps 3",
];

/// Runs `options` on a profile. Returns what is printed, the JSON and the trace.
fn simulated(options: &str, folder: &Path) -> (String, String, String) {
    let json = folder.join("a.json");
    let outputs = format!("--quiet --json {} --trace {}", json.display(), folder.display());
    let app = options.split(' ').next().unwrap();
    let text = stdout_of(&talpf(&format!("{options} --simulate kunpeng-4x4 {outputs}")));
    let prv = folder.join(app).with_extension("prv");
    let check = stdout_of(&talpf_with(&["trace", "check", prv.to_str().unwrap()]));
    assert!(check.starts_with("0 errors, 0 warnings; "), "{options}: {check}");
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    (text, read(&json), read(&prv))
}

#[test]
fn every_variant_has_the_result_of_serial_and_three_runs_are_alike() {
    let folder = tempdir().unwrap();
    for app in SMALL {
        let (variants, replayed) = variants_of(app.split(' ').next().unwrap());
        for variant in variants.iter().filter(|variant| variant.is_simulated()) {
            let replays = app.starts_with("g") && replayed.contains(variant);
            let variant = variant.name();
            for replay in ["", " --replay"].iter().take(if replays { 2 } else { 1 }) {
                let options = format!("{app} --variant {variant}{replay} --ranks 4 --check");
                let once = || simulated(&options, folder.path());
                let first = once();
                assert!(value(&first.0, "verified").starts_with("yes"), "{options}: {}", first.0);
                assert!(first == once() && first == once(), "{options}");
            }
        }
    }
}

#[test]
fn whatever_is_printed_says_simulated_and_names_the_profile() {
    let folder = tempdir().unwrap();
    let options = "jacobi --size 64 --block 16 --steps 5 --ranks 3 --cores-per-rank 2";
    let (text, json, trace) = simulated(options, folder.path());
    assert_eq!(value(&text, "simulated"), "profile kunpeng-4x4, 2 cores a rank");
    assert!(value(&text, "time").ends_with(" s (simulated)"), "{text}");
    assert!(value(&text, "breakdown").ends_with(" % of 6 cores"), "{text}");
    assert!(!text.contains("workers"), "{text}");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["simulated"]["profile"], "kunpeng-4x4");
    assert_eq!(json["simulated"]["cores_per_rank"], 2);
    let part = |name: &str| json["breakdown"][name].as_f64().unwrap();
    let parts = part("tasks_s") + part("runtime_s") + part("waiting_s");
    assert!((parts - 6.0 * part("elapsed_s")).abs() < 1e-9, "{json}");
    // 64 x 64 cells of 10.6 ns, in steps; each task is rounded up to a nanosecond.
    assert!((part("tasks_s") - 5.0 * 64.0 * 64.0 * 10.6e-9).abs() < 1e-7, "{json}");
    assert!(trace.contains("# 3 ranks, simulated: profile kunpeng-4x4, 2 cores a rank\n"));
    let header = trace.lines().next().unwrap();
    assert!(
        header.contains("01/01/1970") && header.ends_with(":1(6):1:3(2:1,2:1,2:1)"),
        "{header}"
    );
    let prv = folder.path().join("jacobi.prv");
    let (prv, svg) = (prv.to_str().unwrap(), folder.path().join("a.svg"));
    let machine = "simulated: profile kunpeng-4x4, 2 cores a rank";
    let summary = stdout_of(&talpf_with(&["trace", "summary", prv]));
    assert_eq!(summary.lines().nth(1), Some(machine), "{summary}");
    let diff = stdout_of(&talpf_with(&["trace", "diff", prv, prv]));
    assert!(diff.contains(&machine.replace(':', ", second trace:")), "{diff}");
    for view in ["states", "states-time"] {
        let options = ["trace", "render", prv, "--view", view, "-o", svg.to_str().unwrap()];
        assert!(talpf_with(&options).status.success());
        assert!(fs::read_to_string(&svg).unwrap().contains(machine), "{view}");
    }
}

#[test]
fn single_blocks_are_a_task_each() {
    let folder = tempdir().unwrap();
    let tasks = |app: &str, more: &str| {
        let options = format!("{app} --size 64 --block 16 --steps 5 --check {more}");
        let (text, _, _) = simulated(&options, folder.path());
        assert!(value(&text, "verified").starts_with("yes"), "{text}");
        let prv = folder.path().join(format!("{app}.prv"));
        let summary = talpf_traces::Summary::of(prv).unwrap();
        summary.tasks[app].tasks
    };
    for app in ["jacobi", "gauss-seidel"] {
        assert_eq!(tasks(app, "--single-blocks"), 4 * 4 * 5);
        assert_eq!(tasks(app, ""), 4 * 5);
    }
}

#[test]
fn more_cores_faster_links_and_cheaper_work_take_less_time() {
    let folder = tempdir().unwrap();
    let profile = folder.path().join("mine.toml");
    fs::write(&profile, "[link]\nlatency = '5us'\n[costs]\njacobi = '100ns'\n").unwrap();
    let run = |profile: &str, more: &str| -> f64 {
        let options = format!("jacobi --size 64 --block 16 --steps 4 --ranks 2 --quiet {more}");
        let text = stdout_of(&talpf(&format!("{options} --simulate {profile}")));
        let time = value(&text, "time").split(' ').next().unwrap();
        time.parse().unwrap()
    };
    let mine = profile.to_str().unwrap();
    let slow = run(mine, "");
    assert!(run(mine, "--cores-per-rank 2") < slow);
    assert!(run("ideal", "--cost jacobi=100ns") < slow);
    assert!(run(mine, "--cost jacobi=50ns") < slow);
}

#[test]
fn a_master_is_as_fast_as_the_best_static_distribution_within_a_twentieth() {
    let run = |variant: &str, ranks: usize| -> f64 {
        let options = "mandelbrot --size 256 --limit 300 --block 2 --steps 5 --quiet --execute no";
        let machine = format!("--ranks {ranks} --simulate kunpeng-4x4 --cores-per-rank 1");
        let text = stdout_of(&talpf(&format!("{options} --variant {variant} {machine}")));
        value(&text, "time").split(' ').next().unwrap().parse().unwrap()
    };
    for ranks in [1, 2, 4, 8] {
        let [queue, best] = ["talpf-queue", "talpf-default"].map(|variant| run(variant, ranks));
        assert!(queue < 1.05 * best, "{ranks} ranks: {queue} s, {best} s");
    }
}

#[test]
fn a_polling_frequency_of_the_user_goes_before_that_of_the_profile() {
    let run = |frequency: Option<&str>| {
        let options =
            "jacobi --size 64 --block 16 --steps 5 --ranks 2 --quiet --simulate kunpeng-4x4";
        let mut command = crate::command(&options.split(' ').collect::<Vec<_>>());
        frequency.map(|frequency| command.env("TALPF_POLLING_FREQUENCY", frequency));
        value(&stdout_of(&command.output().unwrap()), "time").to_owned()
    };
    let usual = run(None);
    assert_eq!(run(Some("100ns")), usual);
    assert!(run(Some("100us")) > usual);
}

#[test]
fn what_is_not_simulated_is_refused() {
    let only = "does not run in virtual time: jacobi, gauss-seidel, nbody, matmul, kmeans and \
                mandelbrot do, in their variants with ranks";
    for (options, expected) in [
        ("jacobi --variant serial", format!("serial {only}")),
        ("jacobi --variant fork-join", format!("fork-join {only}")),
        ("matmul-g", format!("matmul-g {only}")),
        ("histogram", format!("histogram {only}")),
        ("jacobi --workers 2", "--workers is not supported with --simulate".to_owned()),
        ("jacobi --slow-rank 0:2", "--slow-rank is not supported with --simulate".to_owned()),
        (
            "jacobi --cost nbody=1",
            "ideal: nbody = 1: give the time of a unit of work, such as 1.5ns, behind that of a \
             task, if it has one, as in 500ns + 1.5ns"
                .to_owned(),
        ),
    ] {
        let error = error_of(&talpf(&format!("{options} --simulate ideal")));
        assert_eq!(error, expected, "{options}");
    }
    let error = error_of(&talpf("jacobi --simulate mppa-cc"));
    let expected = "profile mppa-cc has no cost of `jacobi`: give one, as in --cost jacobi=1.5ns";
    assert_eq!(error, expected);
    let error = error_of(&talpf("jacobi --simulate nowhere.toml"));
    assert!(error.starts_with("nowhere.toml: no such profile"), "{error}");
    let usage = talpf("jacobi --cores-per-rank 2");
    assert!(String::from_utf8_lossy(&usage.stderr).contains("--simulate"), "{usage:?}");
}

#[test]
fn bad_profiles_are_refused_with_their_line() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("bad.toml");
    for (text, expected) in [
        ("[link]\nlatency = '-1us'\n", "line 2: latency = -1us: give"),
        ("[machine]\ncores = 0\n", "line 2: cores = 0: give a whole number from 1 to 1024"),
        ("[machine]\nspeed = 1\n", "line 2: no such key: speed; the keys are cores, polling"),
        ("[costs]\njacobi = 'fast'\n", "line 2: jacobi = fast: give the time of a unit of work"),
    ] {
        fs::write(&path, text).unwrap();
        let error = error_of(&talpf(&format!("jacobi --simulate {}", path.display())));
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn comparisons_name_the_profile_and_repeat_to_the_byte() {
    let folder = tempdir().unwrap();
    let compare = |more: &str| {
        talpf(&format!(
            "compare jacobi --size 64 --block 16 --steps 4 --ranks 1,4 --quiet --out {} {more}",
            folder.path().display()
        ))
    };
    let simulate = "--simulate kunpeng-4x4 --cores-per-rank 2";
    let text = stdout_of(&compare(simulate));
    assert!(text.contains("Simulated: profile kunpeng-4x4, 2 cores a rank.\n"), "{text}");
    assert!(text.contains(" times the rate of lpf on 1 rank.\n"), "{text}");
    assert!(!text.contains("serial") && text.contains("tampi"), "{text}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let (results, page) = (read("results.json"), read("report.html"));
    assert!(page.contains("jacobi: variants compared, simulated"), "{page}");
    let json: Value = serde_json::from_str(&results).unwrap();
    assert_eq!(json["simulated"], "profile kunpeng-4x4, 2 cores a rank");
    let points = json["points"].as_array().unwrap();
    assert_eq!(points.len(), 2 * 10);
    for point in points {
        assert_eq!(point["seconds"].as_array().unwrap().len(), 1);
        assert_eq!(point["workers"], 2 * point["ranks"].as_u64().unwrap());
    }
    // Both ends of three borders, in four steps.
    assert_eq!(points[1]["traces"][0]["messages"], 24);
    stdout_of(&compare(simulate));
    assert_eq!((read("results.json"), read("report.html")), (results, page));
    let error = error_of(&compare(&format!("{simulate} --variants serial")));
    assert!(error.starts_with("serial does not run in virtual time"), "{error}");
    let error = error_of(&compare(&format!("{simulate} --workers 2")));
    assert_eq!(error, "--workers is not supported with --simulate");
}
