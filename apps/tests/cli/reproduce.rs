//! `talpf reproduce`: figures of the thesis in virtual time.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::{stdout_of, talpf};

#[test]
fn a_report_judges_each_statement_and_repeats_to_the_byte() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("report");
    let run = || {
        let text =
            stdout_of(&talpf(&format!("reproduce 7.1 7.7 --quick --quiet -o {}", out.display())));
        let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
        (text, read("results.json"), read("report.html"))
    };
    let first = run();
    let (text, json, page) = &first;
    assert!(text.starts_with("Simulated: profile kunpeng-4x4, 31 cores a rank"), "{text}");
    let json: Value = serde_json::from_str(json).unwrap();
    let figures = json["figures"].as_array().unwrap();
    // Gauss-Seidel is there in two sizes.
    assert_eq!(figures.len(), 3);
    let sizes = [1, 2].map(|at| figures[at]["problem_of_one_rank"].as_str().unwrap());
    assert!(sizes[0].contains("block 64") && sizes[1].contains("block 512"), "{sizes:?}");
    for figure in figures {
        for point in figure["points"].as_array().unwrap() {
            assert!(point["seconds"].as_f64().unwrap() > 0.0, "{point}");
        }
        let statements = figure["statements"].as_array().unwrap();
        for statement in statements {
            let outcome = statement["outcome"].as_str().unwrap();
            assert!(["agrees", "differs"].contains(&outcome), "{statement}");
            assert!(!statement["found"].as_str().unwrap().is_empty());
            assert!(!statement["assumption"].as_str().unwrap().is_empty());
        }
        assert!(statements.len() >= 3, "{figure}");
    }
    assert!(page.contains("<h2>Figure 7.7: Gauss-Seidel, strong scaling</h2>"));
    assert!(
        page.contains("<h2>Figure 7.7: Gauss-Seidel of the reference size, strong scaling</h2>")
    );
    assert_eq!(page.matches("<svg viewBox").count(), 6);
    // One file: nothing is loaded.
    for outside in ["http", "<script", "<link", "src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(first == run());
}

#[test]
fn other_figures_are_refused() {
    let usage = talpf("reproduce 7.2");
    let errors = String::from_utf8_lossy(&usage.stderr);
    assert!(!usage.status.success() && errors.contains("7.16"), "{errors}");
}
