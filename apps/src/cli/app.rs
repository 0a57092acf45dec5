//! One run of an application, from its options to its outputs.

use std::io::Write;
use std::path::PathBuf;

use talpf_apps::run::{self, App, Machine, Observer, Outcome, Problem, Variant};
use talpf_apps::{Error, memory, picture};
use talpf_runtime::{GraphRecorder, Monitor, TaskGraph};

use super::on_signal::DumpOnSignal;
use super::output::Output;
use super::progress_bar::ProgressBar;
use super::report::Report;
use super::run_options::RunOptions;
use super::trace_output::TraceOutput;

/// Most tasks that `--graph` draws: more cannot be told apart.
const DRAWN: usize = 2000;

/// Runs `variant`. Outputs are opened first, and written even when the check fails.
pub(super) fn run<A: App>(
    variant: Variant,
    problem: &A::Problem,
    options: &RunOptions,
) -> Result<(), Error> {
    let machine = options.machine::<A>(variant, problem)?;
    let first = machine.transport().has_first_rank();
    memory::require(bytes::<A>(variant, problem, machine.ranks(), options.check))?;
    let open =
        |path: &Option<PathBuf>| path.as_deref().filter(|_| first).map(Output::open).transpose();
    let (image, json) = (open(&options.image)?, open(&options.json)?);
    let drawing = open(&options.graph)?;
    let trace = options.trace.as_deref();
    let trace = trace.map(|dir| TraceOutput::open(dir, A::NAME, machine)).transpose()?;
    let outputs =
        [image.as_ref(), json.as_ref(), drawing.as_ref(), trace.as_ref().map(TraceOutput::output)];
    Output::must_all_differ(outputs.into_iter().flatten())?;

    let solve = |variant: Variant, machine: Machine, observer: Observer| {
        let (_bar, progress) =
            ProgressBar::start(variant.name(), problem.steps(), options.quiet || !first);
        run::run::<A>(variant, problem, machine, &Observer { progress, ..observer })
    };
    let monitor = Monitor::default();
    let _dumps = DumpOnSignal::start(monitor.clone()).map_err(Error::Signals)?;
    let graph = drawing.map(|drawing| (drawing, GraphRecorder::new(DRAWN)));
    let observer = Observer {
        recorder: trace.as_ref().map(TraceOutput::recorder),
        monitor: monitor.clone(),
        graph: graph.as_ref().map(|(_, graph)| graph.clone()),
        ..Observer::default()
    };
    let Some(solution) = solve(variant, machine, observer)? else { return Ok(()) };
    let serial = || solve(Variant::Serial, Machine::ONE, Observer::default());
    let serial = if options.check { serial()? } else { None };
    let difference = serial.map(|serial| solution.result.difference(&serial.result));

    let verified = difference.as_ref().map(Option::is_none);
    let metrics = monitor.metrics();
    let report = Report::new::<A>(variant, problem, &solution, verified, metrics);
    super::print(&report.lines(solution.result.hash()))?;
    if let Some(trace) = trace {
        super::print(&trace.write(&solution.machine, report.comments())?)?;
    }
    if let Some((drawing, graph)) = graph {
        super::print(&draw(drawing, &graph.graph())?)?;
    }
    if let Some(json) = json {
        json.write(|out| report.write_json(out))?;
    }
    if let Some(image) = image {
        image.write(|out| picture::write_heat_map(&solution.result.picture(), out))?;
    }
    match difference.flatten() {
        None => Ok(()),
        Some((place, found, expected)) => {
            Err(Error::Differs { variant: variant.name(), place, found, expected })
        }
    }
}

/// Writes a graph, and returns the line that says so.
fn draw(drawing: Output, graph: &TaskGraph) -> Result<String, Error> {
    let (tasks, spawned) = (graph.tasks().len(), graph.spawned());
    let drawn = if spawned > tasks as u64 {
        format!("the first {tasks} of {spawned} tasks, no more are drawn")
    } else {
        format!("{tasks} tasks")
    };
    let path = drawing.path().display();
    let line = format!("graph     {path} ({drawn}; {} dependencies)\n", graph.dependencies().len());
    drawing.write(|out| out.write_all(graph.to_svg().as_bytes()))?;
    Ok(line)
}

/// Bytes at the largest: a check runs serial beside the result.
fn bytes<A: App>(variant: Variant, problem: &A::Problem, ranks: usize, check: bool) -> u64 {
    let bytes = A::bytes(variant, problem, ranks);
    if check {
        let serial = A::bytes(Variant::Serial, problem, 1);
        bytes.max(serial.saturating_add(problem.result_bytes()))
    } else {
        bytes
    }
}
