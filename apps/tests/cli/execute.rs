//! Runs in virtual time without execution: `--simulate .. --execute no`.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::{error_of, stdout_of, talpf, value};

/// Runs with the variants that have an exchange each.
const RUNS: [(&str, &[&str]); 6] = [
    (
        "jacobi --rows 300 --cols 700 --block 32 --steps 9",
        &["lpf", "talpf-default", "talpf-cached-ack", "talpf-raw-cached", "talpf-get", "tampi"],
    ),
    (
        "gauss-seidel --rows 300 --cols 200 --block 32 --single-blocks --steps 5",
        &["lpf", "talpf-default", "talpf-lanes"],
    ),
    (
        "nbody --particles 999 --block 50 --steps 3",
        &["talpf-cached-barrier", "tampi", "tampi-blocking"],
    ),
    ("matmul --size 150 --block 16 --iterations 3", &["talpf-cached-ack", "talpf-get", "tampi"]),
    (
        "kmeans --points 2003 --clusters 9 --block 100 --steps 3",
        &["lpf", "talpf-msg", "talpf-notify", "tampi"],
    ),
    ("mandelbrot --size 60 --limit 90 --block 2 --steps 3", &["talpf-default", "talpf-queue"]),
];

#[test]
fn times_breakdowns_and_traces_are_those_of_a_run_with_execution() {
    let folder = tempdir().unwrap();
    for (options, variants) in RUNS {
        for variant in variants {
            let json = folder.path().join("a.json");
            let run = |more: &str| {
                let text = stdout_of(&talpf(&format!(
                    "{options} --variant {variant} --ranks 4 --simulate kunpeng-4x4 --quiet \
                     --json {} --trace {} {more}",
                    json.display(),
                    folder.path().display()
                )));
                let app = options.split(' ').next().unwrap();
                let trace = folder.path().join(app).with_extension("prv");
                let json = fs::read_to_string(&json).unwrap();
                (text, json, fs::read_to_string(trace).unwrap())
            };
            let (executed, skipped) = (run(""), run("--execute no"));
            for name in ["time", "rate", "breakdown"] {
                let [one, other] = [&executed.0, &skipped.0].map(|text| value(text, name));
                assert_eq!(one, other, "{options} {variant}");
            }
            let records = |trace: &str| -> Vec<String> {
                trace.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
            };
            assert!(records(&executed.2) == records(&skipped.2), "{options} {variant}");
            assert!(skipped.2.contains("a rank, without execution\n"), "{}", skipped.0);
            assert_eq!(value(&skipped.0, "checksum"), "none, as no body was executed");
            let json: Value = serde_json::from_str(&skipped.1).unwrap();
            assert_eq!(json["checksum"], Value::Null);
            assert_eq!(json["simulated"]["executed"], false);
        }
    }
}

/// Two matrices of 32 GiB, of which no page is touched.
#[test]
fn arrays_take_no_memory() {
    let options = "jacobi --size 65536 --block 4096 --steps 2 --ranks 4 --execute no --quiet";
    let text = stdout_of(&talpf(&format!("{options} --simulate kunpeng-4x4")));
    assert!(value(&text, "time").ends_with(" s (simulated)"), "{text}");
}

#[test]
fn what_needs_a_result_is_refused() {
    for (options, expected) in [
        ("jacobi --check", "--check is not supported with --execute no"),
        ("jacobi --image a.png", "--image is not supported with --execute no"),
        ("jacobi --tolerance 1", "--tolerance is not supported with --execute no"),
        ("gauss-seidel --tolerance 1", "--tolerance is not supported with --execute no"),
    ] {
        let error = error_of(&talpf(&format!("{options} --simulate kunpeng-4x4 --execute no")));
        assert_eq!(error, expected, "{options}");
    }
    let usage = talpf("jacobi --execute no");
    assert!(String::from_utf8_lossy(&usage.stderr).contains("--simulate"), "{usage:?}");
}
