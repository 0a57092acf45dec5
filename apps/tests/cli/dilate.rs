//! Runs on virtual cores in dilated time.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::{error_of, stdout_of, talpf, talpf_with, value, variants_of};

/// Runs whose sizes do not divide.
pub(crate) const SMALL: [&str; 8] = [
    "jacobi --rows 37 --cols 23 --block 8 --steps 5",
    "gauss-seidel --rows 37 --cols 23 --block 8 --single-blocks --steps 5",
    "nbody --particles 101 --block 10 --steps 2",
    "matmul --size 61 --block 8 --iterations 2",
    "matmul-g --size 61 --block 8 --iterations 2",
    "histogram --numbers 1001 --bins 13 --block 100 --steps 3",
    "kmeans --points 1001 --clusters 7 --block 100 --steps 3",
    "mandelbrot --size 41 --limit 60 --block 3 --steps 2",
];

#[test]
fn every_variant_with_ranks_has_the_bits_of_serial() {
    for small in SMALL {
        let (variants, _) = variants_of(small.split(' ').next().unwrap());
        for variant in variants.iter().filter(|variant| variant.has_ranks()) {
            for cores in ["--workers 1 --cores-per-rank 1", "--workers 2 --cores-per-rank 3"] {
                let run = format!("{small} --ranks 4 --variant {} {cores}", variant.name());
                let text = stdout_of(&talpf(&format!("{run} --dilate 20 --check")));
                assert!(value(&text, "verified").starts_with("yes"), "{run}: {text}");
            }
        }
    }
}

#[test]
fn a_slow_rank_is_slower_than_its_virtual_cores() {
    let run = "gauss-seidel --rows 37 --cols 23 --block 8 --single-blocks --steps 5 --ranks 4 \
               --cores-per-rank 2";
    let text = stdout_of(&talpf(&format!("{run} --dilate 20 --slow-rank 1:3 --check")));
    assert!(value(&text, "verified").starts_with("yes"), "{text}");
}

#[test]
fn a_link_takes_as_many_times_as_long() {
    let run =
        "jacobi --size 64 --block 16 --steps 5 --ranks 2 --cores-per-rank 1 --link latency=100us";
    let seconds = |factor: u32, variant: &str| {
        let run = format!("{run} --dilate {factor} --variant {variant} --check");
        let text = stdout_of(&talpf(&run));
        assert!(value(&text, "verified").starts_with("yes"), "{run}: {text}");
        let link = format!("latency=100us (simulated, dilated {factor})");
        assert_eq!(value(&text, "link"), link, "{run}");
        value(&text, "time").split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    for variant in ["talpf-cached", "tampi"] {
        // Each step needs what the one before has sent: at least four messages one after another.
        assert!(seconds(2, variant) >= 4.0 * 2.0 * 100e-6);
        assert!(seconds(200, variant) >= 4.0 * 200.0 * 100e-6);
    }
}

#[test]
fn a_run_says_how_dilated_its_time_is_and_how_late_cores_were_given_back() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.json");
    let run = "jacobi --size 64 --block 16 --single-blocks --steps 3 --ranks 4 --cores-per-rank 2";
    let text = stdout_of(&talpf(&format!("{run} --dilate 32.5 --json {}", path.display())));
    assert_eq!(value(&text, "cores"), "dilated 32.5, 2 cores a rank");
    assert!(value(&text, "time").ends_with(" s (dilated 32.5)"), "{text}");
    assert!(value(&text, "rate").ends_with("/s (dilated 32.5)"), "{text}");
    // Three steps of 16 blocks.
    assert!(value(&text, "overshoot").contains(" in 48 tasks ("), "{text}");
    let json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let dilated = &json["dilated"];
    assert_eq!((&dilated["factor"], &dilated["cores_per_rank"]), (&32.5.into(), &2.into()));
    let count = |name: &str| dilated["overshoot"][name].as_u64().unwrap();
    assert_eq!(count("tasks"), 48);
    assert!(count("held_ns") > 0 && count("late_ns") >= count("largest_ns"), "{dilated}");
    assert!(json["workers"].is_u64() && json["simulated"].is_null(), "{json}");
    let text = stdout_of(&talpf("jacobi --size 16 --block 8 --steps 1 --ranks 1"));
    assert!(!text.contains("dilated") && !text.contains("overshoot"), "{text}");
}

#[test]
fn ranks_have_as_many_tasks_on_cores_as_cores_and_more_than_there_are_workers() {
    const TASKS_ON_CORES: &str = "95000027";
    let folder = tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let run = "nbody --particles 512 --block 32 --steps 1 --ranks 4 --workers 1 \
               --cores-per-rank 3 --dilate 200 --trace";
    let arguments: Vec<&str> = run.split_whitespace().chain([path]).collect();
    stdout_of(&talpf_with(&arguments));
    let prv = folder.path().join("nbody.prv");
    let check = stdout_of(&talpf_with(&["trace", "check", prv.to_str().unwrap()]));
    assert!(check.starts_with("0 errors, 0 warnings; "), "{check}");
    let (mut now, mut most_of_rank, mut most) = (HashMap::new(), 0, 0);
    let trace = fs::read_to_string(&prv).unwrap();
    // One worker, whose row is that of the first rank: cores have none.
    assert!(trace.lines().next().unwrap().contains(":1(1):"), "{trace:.500}");
    assert!(trace.contains("4 ranks, 1 worker, dilated 200, 3 cores a rank"), "{trace:.500}");
    for line in trace.lines().filter(|line| line.starts_with("2:")) {
        let fields: Vec<&str> = line.split(':').collect();
        for pair in fields[6..].chunks(2).filter(|pair| pair[0] == TASKS_ON_CORES) {
            let tasks: u64 = pair[1].parse().unwrap();
            now.insert(fields[3].to_owned(), tasks);
            most_of_rank = most_of_rank.max(tasks);
            most = most.max(now.values().sum());
        }
    }
    assert_eq!(most_of_rank, 3);
    assert!(most >= 6, "{most} at a time with one worker");
}

#[test]
fn dilation_that_is_too_small_or_has_no_cores_is_refused() {
    let too_small = |workers: usize| {
        let host = talpf_runtime::cores().min(workers);
        let least = 32.0 / host as f64;
        format!(
            "dilation is 3.5, expected at least {least}: 8 x 4 virtual cores, of ranks and of each \
             rank, hold work that {host} of this machine's cores can do only {least} times as slowly"
        )
    };
    let cores = "--cores-per-rank 4";
    let processes = "several processes";
    for (options, expected) in [
        (format!("--ranks 8 {cores} --dilate 3.5 --workers 1"), too_small(1)),
        (format!("--ranks 8 {cores} --dilate 3.5 --workers 2"), too_small(2)),
        (
            "--dilate 8".to_owned(),
            "the following required arguments were not provided: --cores-per-rank <C>".to_owned(),
        ),
        (
            cores.to_owned(),
            "the following required arguments were not provided: <--simulate <PROFILE>|--dilate <F>>"
                .to_owned(),
        ),
        (
            format!("{cores} --dilate 0.9"),
            "invalid value '0.9' for '--dilate <F>': expected a number from 1 to 1000000".to_owned(),
        ),
        (
            format!("{cores} --dilate nan"),
            "invalid value 'nan' for '--dilate <F>': expected a number from 1 to 1000000".to_owned(),
        ),
        (
            "--cores-per-rank 0 --dilate 8".to_owned(),
            "invalid value '0' for '--cores-per-rank <C>': expected a whole number from 1 to 1024"
                .to_owned(),
        ),
        (
            format!("{cores} --dilate 8 --simulate hdr-infiniband"),
            "the argument '--dilate <F>' cannot be used with '--simulate <PROFILE>'".to_owned(),
        ),
        (
            format!("{cores} --dilate 8 --variant serial"),
            "serial is not supported with --dilate".to_owned(),
        ),
        (
            format!("{cores} --dilate 8 --variant fork-join"),
            "fork-join is not supported with --dilate".to_owned(),
        ),
        (
            format!("{cores} --dilate 8 --replay"),
            "--replay is not supported with --dilate".to_owned(),
        ),
        (
            format!("{cores} --dilate 8 --transport shm"),
            "--dilate is not supported with --transport shm".to_owned(),
        ),
    ] {
        let error = error_of(&talpf(&format!("jacobi {options}")));
        assert!(error.starts_with(&expected), "{options}: {error}");
        assert!(!error.contains(processes), "{error}");
    }
}

#[test]
fn dilation_that_is_just_enough_is_accepted() {
    let run = "jacobi --size 64 --block 32 --steps 2 --workers 1 --ranks 2 --cores-per-rank 3";
    stdout_of(&talpf(&format!("{run} --dilate 6")));
    let error = error_of(&talpf(&format!("{run} --dilate 5.99")));
    assert!(error.starts_with("dilation is 5.99, expected at least 6: "), "{error}");
}

#[test]
fn comparisons_say_that_their_times_are_dilated() {
    let folder = tempdir().unwrap();
    let run = "compare jacobi --size 64 --block 16 --steps 3 --repeat 2 --ranks 1,4 --quiet \
               --cores-per-rank 2 --dilate 50 --variants talpf-cached,tampi --out";
    let path = folder.path().to_str().unwrap();
    let arguments: Vec<&str> = run.split_whitespace().chain([path]).collect();
    let text = stdout_of(&talpf_with(&arguments));
    let sentence = "Times are dilated 50, 2 cores a rank. Cores were given back late by ";
    assert!(text.contains(sentence) && !text.contains("serial"), "{text}");
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("<h1>jacobi: variants compared, dilated</h1>"), "{page:.700}");
    let json = fs::read(folder.path().join("results.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["dilated"], "dilated 50, 2 cores a rank");
    assert_eq!(json["conditions"]["virtual cores"], "dilated 50, 2 cores a rank");
    let points = json["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    for point in points {
        assert_eq!(point["workers"], 2 * point["ranks"].as_u64().unwrap());
        assert!(point["overshoot"]["tasks"].as_u64() > Some(0), "{point}");
    }
    let error = error_of(&talpf("compare jacobi --cores-per-rank 64 --dilate 2 --ranks 1,4"));
    assert!(error.starts_with("dilation is 2, expected at least "), "{error}");
    let error = error_of(&talpf("compare jacobi --cores-per-rank 1 --dilate 9 --variants serial"));
    assert_eq!(error, "serial is not supported with --dilate");
}
