//! `talpf calibrate`: a profile of this machine.

use std::fs;

use tempfile::tempdir;

use crate::{stdout_of, talpf, value};

#[test]
fn a_measured_profile_has_all_costs_and_runs_are_simulated_on_it() {
    let folder = tempdir().unwrap();
    let profile = folder.path().join("mine.toml");
    let text =
        stdout_of(&talpf(&format!("calibrate --quick --repeat 1 --out {}", profile.display())));
    for app in ["jacobi", "gauss-seidel", "nbody", "matmul", "kmeans", "mandelbrot"] {
        let lines = text.lines().filter(|line| line.starts_with(&format!("{app}, ")));
        let predicted = lines.filter(|line| line.contains(", predicted ") && line.ends_with(" %"));
        assert_eq!(predicted.count(), 4, "{text}");
        let run = format!("{app} --simulate {} --execute no --quiet", profile.display());
        assert!(value(&stdout_of(&talpf(&run)), "time").ends_with(" s (simulated)"));
    }
    assert!(text.contains("\nmedian error "), "{text}");
    let written = fs::read_to_string(&profile).unwrap();
    assert!(written.starts_with("# This machine, by talpf calibrate."), "{written}");
}

#[test]
fn one_application_is_measured_alone() {
    let folder = tempdir().unwrap();
    let profile = folder.path().join("mine.toml");
    let options = format!("calibrate matmul --quick --repeat 1 -o {}", profile.display());
    stdout_of(&talpf(&options));
    let written = fs::read_to_string(&profile).unwrap();
    assert!(written.contains("\nmatmul = ") && !written.contains("jacobi"), "{written}");
}
