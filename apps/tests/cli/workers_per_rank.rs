//! Runs whose ranks have workers of their own.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::dilate::SMALL;
use crate::{error_of, stdout_of, talpf, value, variants_of};

const JACOBI: &str = "jacobi --rows 37 --cols 23 --block 8 --steps 5";

#[track_caller]
fn is_serial(run: &str) -> String {
    let text = stdout_of(&talpf(&format!("{run} --check")));
    assert!(value(&text, "verified").starts_with("yes"), "{run}: {text}");
    text
}

#[test]
fn every_variant_with_ranks_has_the_bits_of_serial() {
    for small in SMALL {
        let (variants, _) = variants_of(small.split(' ').next().unwrap());
        for variant in variants.iter().filter(|variant| variant.has_ranks()) {
            for each in [1, 2] {
                let own = format!("--ranks 4 --workers-per-rank {each}");
                is_serial(&format!("{small} --variant {} {own}", variant.name()));
            }
        }
    }
}

#[test]
fn replayed_graphs_slow_ranks_links_and_virtual_cores() {
    for options in [
        "--replay",
        "--slow-rank 1:3",
        "--link latency=20us",
        "--cores-per-rank 3 --dilate 20",
        "--check-conflicts",
    ] {
        is_serial(&format!("{JACOBI} --ranks 3 --workers-per-rank 1 {options}"));
    }
}

#[test]
fn a_run_says_how_many_workers_each_rank_has() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.json");
    let json = format!("--json {}", path.display());
    let text = is_serial(&format!("{JACOBI} --ranks 3 --workers-per-rank 2 {json}"));
    assert_eq!(value(&text, "workers"), "6, 2 of each rank alone");
    let json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!((&json["workers"], &json["workers_per_rank"]), (&6.into(), &2.into()));
}

#[test]
fn each_process_has_the_workers_of_its_ranks() {
    for (options, workers) in [("-n 3", 2), ("-n 2 --ranks-per-process 2", 4)] {
        let run = format!("launch {options} -- {JACOBI} --quiet --check --workers-per-rank 2");
        let text = stdout_of(&talpf(&run));
        assert!(value(&text, "verified").starts_with("yes"), "{text}");
        assert_eq!(value(&text, "workers"), format!("{workers}, 2 of each rank alone"), "{text}");
    }
}

#[test]
fn a_trace_has_the_slices_of_a_rank_on_its_own_workers() {
    let folder = tempdir().unwrap();
    let trace = folder.path().join("t");
    is_serial(&format!("{JACOBI} --ranks 3 --workers-per-rank 2 --trace {}", trace.display()));
    let prv = trace.join("jacobi.prv");
    stdout_of(&talpf(&format!("trace check {}", prv.display())));
    let prv = fs::read_to_string(prv).unwrap();
    let states = prv.lines().filter_map(|line| line.strip_prefix("1:"));
    let mut running = 0;
    for state in states {
        let fields: Vec<u64> = state.split(':').map(|field| field.parse().unwrap()).collect();
        // Cpu, application, rank and row, both from 1, begin, end, and the state.
        let [_, _, rank, row, _, _, 1] = fields[..] else { continue };
        assert_eq!((row - 1) / 2, rank - 1, "{state}");
        running += 1;
    }
    assert!(running > 0);
}

#[test]
fn comparisons_say_how_many_workers_each_rank_has() {
    let folder = tempdir().unwrap();
    let run = format!("compare {JACOBI} --ranks 1,3 --workers-per-rank 2 --repeat 1 --quiet");
    stdout_of(&talpf(&format!("{run} --out {}", folder.path().display())));
    let json = fs::read(folder.path().join("results.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["conditions"]["workers"], "2 of each rank alone");
    for point in json["points"].as_array().unwrap() {
        let workers = match point["variant"].as_str().unwrap() {
            "serial" => 1,
            _ => 2 * point["ranks"].as_u64().unwrap(),
        };
        assert_eq!(point["workers"], workers, "{point}");
    }
}

#[test]
fn options_that_contradict_workers_of_each_rank() {
    let error = error_of(&talpf(&format!("{JACOBI} --workers 2 --workers-per-rank 2")));
    let both = "'--workers <W>' cannot be used with '--workers-per-rank <N>'";
    assert!(error.contains(both), "{error}");
    for run in [JACOBI.to_owned(), format!("compare {JACOBI}")] {
        let error = error_of(&talpf(&format!("{run} --simulate ideal --workers-per-rank 2")));
        let both = error.contains("--workers-per-rank") && error.contains("--simulate");
        assert!(both, "{error}");
    }
    for variant in ["serial", "fork-join"] {
        let error = error_of(&talpf(&format!("{JACOBI} --variant {variant} --workers-per-rank 2")));
        assert!(error.contains("--workers-per-rank") && error.contains(variant), "{error}");
    }
}

#[test]
fn workers_of_all_ranks_together_are_limited() {
    let run = "jacobi --size 64 --block 16 --steps 1 --ranks";
    for (ranks, each, workers) in [(32, 33, 1056), (1024, 2, 2048), (2, 513, 1026)] {
        let error = error_of(&talpf(&format!("{run} {ranks} --workers-per-rank {each}")));
        let says = "expected 1 to 1024";
        assert_eq!(error, format!("ranks times workers per rank is {workers}, {says}"));
    }
}
