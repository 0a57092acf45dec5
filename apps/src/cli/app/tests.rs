//! Recordings of a run that fails.

use std::fs;
use std::path::Path;

use clap::Parser;
use talpf_apps::Matrix;
use talpf_apps::run::{ForkJoin, Serial, Solution, Tasks, Work};
use talpf_runtime::{Array, Config, Runtime};
use tempfile::tempdir;

use super::*;

/// Application that fails in a task, or before its first task.
struct Unlucky;

#[derive(Clone)]
struct Fails {
    in_a_task: bool,
}

impl Problem for Fails {
    fn parameters(&self) -> Vec<(&'static str, usize)> {
        vec![("size", 1)]
    }

    fn steps(&self) -> usize {
        1
    }

    fn work(&self) -> Work {
        Work { amount: 1.0, unit: "none", field: "none" }
    }

    fn result_bytes(&self) -> u64 {
        0
    }

    fn scaled(&self, _: usize) -> Result<Self, Error> {
        Ok(self.clone())
    }
}

impl App for Unlucky {
    const NAME: &'static str = "unlucky";
    const VARIANTS: &'static [Variant] = &[Variant::Serial, Variant::TalpfCached];
    const KERNELS: &'static [&'static str] = &[];
    type Problem = Fails;
    type Outcome = Matrix;
    const SERIAL: Serial<Self> = |_, _| unreachable!("nobody checks it");
    const FORK_JOIN: ForkJoin<Self> = |_, _, _| unreachable!("none of its variants");
    const TASKS: Tasks<Self> = fail;

    fn bytes(_: Variant, _: &Fails, _: usize) -> u64 {
        0
    }

    fn check_ranks(_: &Fails, _: usize) -> Result<(), Error> {
        Ok(())
    }
}

fn fail(
    problem: &Fails,
    machine: Machine,
    _: Variant,
    observer: &Observer,
) -> Result<Option<Solution<Matrix>>, Error> {
    if !problem.in_a_task {
        return Err(Error::WithoutMpi);
    }
    let Observer { recorder, graph, .. } = observer.clone();
    let config = Config { workers: machine.workers(), recorder, graph, ..Config::default() };
    let runtime = Runtime::new(config)?;
    let cells = Array::new(&runtime, vec![0u64; 4], 4)?;
    runtime.task("breaks").inout(&cells.all()).spawn(|_| panic!("on purpose"))?;
    runtime.task("never").input(&cells.all()).spawn(|_| ())?;
    runtime.wait_blocking()?;
    Ok(None)
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: RunOptions,
}

/// Runs the application with a trace and a graph in `folder`, and returns its error.
fn failed_run(folder: &Path, in_a_task: bool) -> String {
    let (trace, graph) = (folder.join("trace"), folder.join("graph.svg"));
    let line = format!("run --quiet --trace {} --graph {}", trace.display(), graph.display());
    let Line { options } = Line::parse_from(line.split(' '));
    let failed = run::<Unlucky>(Variant::TalpfCached, &Fails { in_a_task }, &options);
    failed.unwrap_err().to_string()
}

#[test]
fn a_task_that_fails_leaves_the_graph_and_the_trace() {
    let folder = tempdir().unwrap();
    let error = failed_run(folder.path(), true);
    assert!(error.ends_with("task `breaks` of the runtime failed: on purpose"), "{error}");
    let graph = fs::read_to_string(folder.path().join("graph.svg")).unwrap();
    for tip in
        ["breaks of the runtime, task 1, failed", "never of the runtime, task 2, did not run"]
    {
        assert!(graph.contains(tip), "{graph}");
    }
    let trace = folder.path().join("trace/unlucky.prv");
    assert!(talpf_traces::paraver::check(&trace).unwrap().is_clean());
    let trace = fs::read_to_string(trace).unwrap();
    assert!(trace.contains("failed: ") && trace.contains("on purpose"), "{trace}");
}

#[test]
fn a_run_that_never_began_leaves_nothing() {
    let folder = tempdir().unwrap();
    failed_run(folder.path(), false);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
