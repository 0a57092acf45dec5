//! `--graph` draws the tasks of a run.

use std::fs;

use tempfile::tempdir;

use crate::{error_of, stdout_of, talpf, value};

const RUN: &str = "jacobi --size 16 --block 8 --steps 3 --ranks 2 --quiet";

#[test]
fn tasks_of_every_rank_of_every_application_are_drawn() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("graph.svg");
    for run in [
        &format!("{RUN} --variant talpf-cached"),
        &format!("{RUN} --variant tampi"),
        "gauss-seidel --quiet --size 16 --block 8 --single-blocks --steps 3 --ranks 2",
        "nbody --quiet --particles 64 --block 16 --steps 2 --ranks 2",
        "matmul --quiet --size 16 --block 8 --iterations 2 --ranks 2",
        "matmul-g --quiet --size 16 --block 8 --iterations 2 --ranks 4",
    ] {
        let text = stdout_of(&talpf(&format!("{run} --graph {}", path.display())));
        let svg = fs::read_to_string(&path).unwrap();
        let drawn = svg.matches("<title>").count();
        assert!(svg.contains(">rank 0<") && svg.contains(">rank 1<"), "{run}");
        assert!(value(&text, "graph").contains(&format!(" ({drawn} tasks; ")), "{text}");
    }
}

#[test]
fn a_long_run_is_cut_and_says_so() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("graph.svg");
    let run = format!(
        "jacobi --size 64 --block 4 --steps 100 --ranks 2 --quiet --graph {}",
        path.display()
    );
    let text = stdout_of(&talpf(&run));
    let shown = value(&text, "graph");
    assert!(shown.contains(" (the first 2000 of "), "{shown}");
    assert_eq!(fs::read_to_string(&path).unwrap().matches("<title>").count(), 2000);
}

#[test]
fn a_graph_that_cannot_be_written_ends_the_run_before_it_starts() {
    let error = error_of(&talpf(&format!("{RUN} --graph /nowhere/graph.svg")));
    assert!(error.contains("/nowhere/graph.svg"), "{error}");
}

#[test]
fn a_graph_does_not_share_its_file() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("both");
    let (path, run) = (path.display(), RUN);
    let error = error_of(&talpf(&format!("{run} --graph {path} --json {path}")));
    assert!(error.contains("both"), "{error}");
}

#[test]
fn variants_without_tasks_and_remote_ranks_have_no_graph() {
    for variant in ["serial", "fork-join"] {
        let error = error_of(&talpf(&format!("{RUN} --variant {variant} --graph none.svg")));
        assert_eq!(error, format!("--graph is not supported with {variant}"));
    }
    let error = error_of(&talpf(&format!("{RUN} --transport mpi --graph none.svg")));
    assert_eq!(error, "--graph is not supported with --transport mpi");
}
