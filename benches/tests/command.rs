//! The `talpf-bench` command from outside.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_talpf-bench");
    Command::new(program).args(arguments).output().expect("the program starts")
}

fn figures(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("figures");
    serde_json::from_str(&text).expect("JSON")
}

fn assert_refused(arguments: &[&str], named: &str) {
    let output = bench(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{arguments:?}");
    assert!(said.contains(named), "{arguments:?}: {said}");
}

#[test]
fn metg_answers_for_every_pattern() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("metg.json");
    let json_name = json.to_str().expect("a name");
    let output = bench(&["metg", "--quick", "--width", "2", "--json", json_name]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures = figures(&json);
    let patterns = [
        "trivial",
        "no_comm",
        "stencil_1d",
        "stencil_1d_periodic",
        "dom",
        "tree",
        "fft",
        "all_to_all",
        "nearest",
        "spread",
        "random_nearest",
    ];
    for pattern in patterns {
        let name = format!("metg.{pattern}_2_us");
        // On a machine that others keep busy, half of the peak may be out of reach.
        let is_out_of_reach = said.contains(&format!("{name}: talpf stays below"));
        assert!(is_out_of_reach || figures[&name]["median"].is_f64(), "{name}: {said}");
    }
}

#[test]
fn metg_measures_what_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("metg.json");
    let arguments = ["metg", "--quick", "--pattern", "tree", "--width", "3", "--kernel", "memory"];
    let output = bench(&[&arguments[..], &["--json", json.to_str().expect("a name")]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("metg.tree_3_memory_us"), "{said}");
    assert!(!said.contains("stencil"), "{said}");
}

#[test]
fn links_measures_every_rail() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("links.json");
    let output = bench(&["links", "--quick", "--json", json.to_str().expect("a name")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures = figures(&json);
    for contender in ["bare", "shm", "packets"] {
        for size in ["8", "64_kib", "1_mib"] {
            let name = format!("links.{contender}_{size}_ns");
            assert!(figures[&name]["median"].is_f64(), "{name}");
        }
    }
    for name in [
        "threads_superstep_us",
        "threads_jacobi_256_us",
        "shm_superstep_8_processes_us",
        "start_8_processes_ms",
    ] {
        assert!(figures[format!("links.{name}")]["median"].is_f64(), "{name}");
    }
    // Without libfabric the command says so.
    let is_there = !String::from_utf8_lossy(&output.stdout).contains("links: without ofi: ");
    let ofi = Some("ofi").filter(|_| is_there);
    for rail in ["shm", "packets"].into_iter().chain(ofi) {
        for name in [
            "8_ns",
            "8_rate",
            "1_mib_rate",
            "read_16_mib_rate",
            "superstep_us",
            "put_8_rate",
            "put_4_mib_rate",
            "get_16_mib_rate",
            "jacobi_256_us",
            "jacobi_1024_vs_threads",
        ] {
            let name = format!("links.{rail}_{name}");
            assert!(figures[&name]["median"].as_f64().is_some_and(|value| value > 0.0), "{name}");
        }
    }
}

#[test]
fn links_measures_the_rails_asked_for() {
    let output = bench(&["links", "--quick", "--rail", "packets"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("links.packets_jacobi_1024_us"), "{said}");
    assert!(!said.contains("links.shm") && !said.contains("processes"), "{said}");
}

#[test]
fn two_sided_measures_all_figures_without_peers() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("two_sided.json");
    let json_name = json.to_str().expect("a name");
    let output = bench(&["two-sided", "--quick", "--without-peers", "--json", json_name]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures = figures(&json);
    let names = [
        "latency_8B_ns",
        "bandwidth_4MiB_gbs",
        "bandwidth_4MiB_gbs.vs_memcpy",
        "rate_8B_mops",
        "match_10000_ns",
        "handover_8B_ns",
        "tasks_8B_ns",
        "barrier_2_us",
        "barrier_8_us",
        "allreduce_4_us",
    ];
    for name in names {
        let median = figures[format!("two_sided.{name}")]["median"].as_f64();
        assert!(median.is_some_and(|median| median > 0.0), "{name}: {median:?}");
    }
}

#[test]
fn growth_measures_the_rows_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("growth.json");
    let output = bench(&["growth", "windows", "--json", json.to_str().expect("a name")]);
    let said = String::from_utf8_lossy(&output.stdout);
    // On a machine that others keep busy a row may fail; its figures are there.
    let figures = figures(&json);
    for size in [10, 100, 2_000] {
        let name = format!("growth.windows.{size}");
        let median = figures[&name]["median"].as_f64();
        assert!(median.is_some_and(|median| median > 0.0), "{name}: {said}");
    }
    assert!(figures["growth.windows.exponent"]["median"].is_f64(), "{said}");
    let failed = said.contains("TOO MUCH");
    assert_eq!(output.status.success(), !failed, "{said}");
}

#[test]
fn growth_counts_instructions_quickly() {
    let output = bench(&["growth", "timers", "--quick"]);
    let (said, wrong) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    if wrong.contains("valgrind is not installed") {
        eprintln!("no valgrind: nothing to check");
        return;
    }
    assert!(output.status.success(), "{said}{wrong}");
    assert!(said.contains("growth.timers.3000.instructions"), "{said}");
    assert!(!said.contains("growth.arrays"), "{said}");
}

#[test]
fn the_instructions_of_a_superstep_are_those_of_its_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("superstep.json");
    let output = bench(&["superstep", "--json", json.to_str().expect("a name")]);
    let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
    if wrong.contains("valgrind is not installed") {
        eprintln!("no valgrind: nothing to check");
        return;
    }
    assert!(output.status.success(), "{wrong}");
    let figures = figures(&json);
    for puts in [0, 1, 1_000] {
        let all = format!("superstep.{puts}_puts.all");
        let parts = figures.as_object().expect("figures").iter();
        let parts =
            parts.filter(|(name, _)| name.starts_with(&all[..all.len() - 3]) && **name != all);
        let sum: f64 = parts.map(|(_, figure)| figure["median"].as_f64().expect("a number")).sum();
        let all = figures[&all]["median"].as_f64().expect("a number");
        assert!((sum - all).abs() <= all / 1e3, "{puts} puts: {sum} of {all}");
    }
}

#[test]
fn arguments_that_make_no_sense_are_named() {
    assert_refused(&["metg", "--pattern", "circle"], "circle");
    assert_refused(&["metg", "--width", "0"], "'0' for '--width <W>': expected a whole number");
    assert_refused(&["metg", "--kernel", "sleep"], "sleep");
    assert_refused(&["two-sided", "--with-peers"], "--with-peers");
    assert_refused(&["other"], "other");
    assert_refused(&["micro", "sleep"], "sleep");
    assert_refused(&["apps", "sleep", "--quick"], "sleep");
    assert_refused(&["growth", "sleep"], "sleep");
    assert_refused(&["growth", "sleep", "--quick"], "sleep");
    assert_refused(&["memory", "--workers", "0"], "from 1 to 1024");
    assert_refused(&["memory", "--throttle", "0"], "from 1 to 16777216");
    assert_refused(&["soak", "--seconds", "0"], "from 1 to 31536000");
    assert_refused(&["soak", "--seed", "x"], "from 0 to 18446744073709551615");
    assert_refused(&["memory", "--tasks", "-1"], "from 1 to 1000000000");
    assert_refused(&["soak", "--only", "sleep"], "tasks, puts-in-process, puts-shm");
}

#[test]
fn an_unwritable_file_is_named_before_the_run() {
    assert_refused(&["metg", "--json", "/no/such/folder/metg.json"], "/no/such/folder/metg.json");
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_run() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_talpf-bench"));
    command.args(["memory", "--tasks", "1000"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = command.spawn().expect("the program starts");
    drop(run.stdout.take());
    let output = run.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(code == Some(141) && said.is_empty(), "{}: {said}", output.status);
}

#[test]
fn a_run_that_fails_leaves_no_file_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("micro.json");
    assert_refused(&["micro", "sleep", "--json", json.to_str().expect("a name")], "sleep");
    assert!(!json.exists());
}

#[test]
fn a_live_task_takes_at_most_512_bytes_and_a_long_run_does_not_grow() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("memory.json");
    let json_name = json.to_str().expect("a name");
    // One worker: nobody whom the others wait for can lose its core.
    let arguments = ["memory", "--tasks", "100000", "--workers", "1", "--json", json_name];
    let output = bench(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures = figures(&json);
    let median = |name: &str| figures[format!("memory.{name}")]["median"].as_f64().expect(name);
    // Its record, and what else became resident meanwhile: some pages.
    assert!((511.0..520.0).contains(&median("task_bytes")), "{figures}");
    let grown = median("resident_last_mib") - median("resident_first_mib");
    assert!(grown < 8.0, "{figures}");
}

#[test]
fn a_soak_goes_through_all_kinds_of_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("soak.json");
    let json_name = json.to_str().expect("a name");
    let output = bench(&["soak", "--seconds", "3", "--seed", "1", "--json", json_name]);
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("seed"), "{said}{wrong}");
    assert!(figures(&json)["soak.tasks.episodes"]["median"].is_f64(), "{said}");
}

#[test]
fn a_soak_runs_puts_within_a_process_and_over_rails() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("soak.json");
    let json_name = json.to_str().expect("a name");
    for fabric in ["in-process", "shm", "ofi"] {
        let name = format!("puts-{fabric}");
        let arguments = ["soak", "--only", &name, "--seconds", "1", "--seed", "1"];
        let output = bench(&[&arguments[..], &["--json", json_name]].concat());
        let wrong = String::from_utf8_lossy(&output.stderr);
        if wrong.contains("finding libfabric") {
            eprintln!("no libfabric: nothing to check");
            continue;
        }
        assert!(output.status.success(), "{name}: {wrong}");
        let figures = figures(&json);
        let episodes = |kind: &str| figures[format!("soak.{kind}.episodes")]["median"].as_f64();
        let (own, other) = (episodes(&name.replace('-', "_")), episodes("tasks"));
        assert!(own.is_some_and(|own| own > 0.0) && other == Some(0.0), "{name}: {figures}");
    }
}

#[test]
fn apps_are_compared_with_what_is_installed() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("apps.json");
    let json_name = json.to_str().expect("a name");
    let output = bench(&["apps", "jacobi_256", "--quick", "--json", json_name]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures = figures(&json);
    for name in ["jacobi_256_mups", "jacobi_256_serial_mups"] {
        let median = figures[format!("apps.{name}")]["median"].as_f64();
        assert!(median.is_some_and(|median| median > 0.0), "{name}: {figures}");
    }
    let compiled = Command::new("gcc").arg("--version").output().is_ok();
    let ratio = figures["apps.jacobi_256_mups.vs_openmp"]["median"].is_f64();
    assert!(ratio == compiled && figures["apps.jacobi_512_mups"].is_null(), "{figures}");
}

#[test]
fn programs_are_measured_without_a_policy() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("ablation.json");
    let json_name = json.to_str().expect("a name");
    let output = bench(&["ablation", "--quick", "--policy", "rest", "--json", json_name]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 round") && said.contains("control"), "{said}");
    let figures = figures(&json);
    for name in ["chain_ns", "chain_ns.control", "chain_ns.rest"] {
        let median = figures[format!("ablation.runtime.{name}")]["median"].as_f64();
        assert!(median.is_some_and(|median| median > 0.0), "{name}: {figures}");
    }
    assert_refused(&["ablation", "--policy", "luck"], "luck");
    assert_refused(&["ablation", "dream"], "dream");
}
