//! Runs that end at a tolerance.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::{error_of, stdout_of, talpf, value};

#[test]
fn steps_and_residual_are_those_of_serial() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("result.json");
    for app in ["jacobi", "gauss-seidel"] {
        let run = |options: &str| {
            let run = format!("{app} --size 20 --block 8 --tolerance 1e-2 {options} --check");
            stdout_of(&talpf(&format!("{run} --json {}", path.display())))
        };
        let serial = run("--variant serial");
        let steps: usize = value(&serial, "steps_run").parse().unwrap();
        assert!(steps.is_multiple_of(16) && (32..400).contains(&steps), "{serial}");
        assert!(value(&serial, "tolerance").starts_with("1.000000e-2"));
        for options in ["--variant fork-join", "", "--ranks 3 --replay", "--variant tampi"] {
            let text = run(options);
            for name in ["steps_run", "residual", "checksum"] {
                assert_eq!(value(&text, name), value(&serial, name), "{app} {options}");
            }
            assert!(value(&text, "verified").starts_with("yes"));
            let json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            assert_eq!(json["steps_run"], steps);
            assert!(json["residual"].as_f64().unwrap() <= json["tolerance"].as_f64().unwrap());
            let updates = (20 * 20 * steps) as f64 / 1e6;
            let rate = json["mupdates_per_s"].as_f64().unwrap();
            assert!((json["seconds"].as_f64().unwrap() * rate / updates - 1.0).abs() < 1e-9);
        }
    }
}

#[test]
fn the_number_of_steps_is_the_limit() {
    let text = stdout_of(&talpf("jacobi --size 50 --steps 37 --tolerance 0 --check"));
    assert_eq!((value(&text, "steps"), value(&text, "steps_run")), ("37", "37"));
    let text = stdout_of(&talpf("jacobi --size 50 --steps 37"));
    assert!(!text.contains("steps_run") && !text.contains("residual"), "{text}");
}

#[test]
fn a_tolerance_is_a_number_of_at_least_0() {
    for app in ["jacobi", "gauss-seidel", "compare jacobi"] {
        for bad in ["-1", "-0.5", "-1e-9", "NaN", "inf", "small"] {
            let error = error_of(&talpf(&format!("{app} --tolerance {bad}")));
            let expected = format!("invalid value '{bad}' for '--tolerance <T>': ");
            assert_eq!(error, expected + "expected a number of at least 0");
        }
    }
    let run = "gauss-seidel --rows 40 --cols 9 --ranks 34 --variant talpf-default --tolerance 1";
    let error = error_of(&talpf(run));
    assert_eq!(error, "ranks is 34, expected at most 33 for talpf-default with a tolerance");
}

#[test]
fn variants_that_end_at_a_tolerance_are_compared() {
    let folder = tempdir().unwrap();
    let run = "compare jacobi --size 20 --block 8 --steps 1000 --tolerance 0.1 --ranks 2";
    let out = format!("--replay --repeat 1 --out {}", folder.path().display());
    stdout_of(&talpf(&format!("{run} {out}")));
    let json = fs::read(folder.path().join("results.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    for point in json["points"].as_array().unwrap() {
        let updates = point["rate"].as_f64().unwrap() * point["seconds"][0].as_f64().unwrap();
        let steps = updates * 1e6 / 400.0;
        assert!((31.9..200.0).contains(&steps), "{steps}");
    }
}
