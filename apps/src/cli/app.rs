//! Command of an application: one run, from its options to its outputs.

use std::marker::PhantomData;
use std::path::PathBuf;

use clap::Args;
use talpf_apps::run::{
    self, App, Interrupt, Machine, Observer, OtherMetrics, Outcome, Overshoot, Problem, Variant,
};
use talpf_apps::{Error, memory, picture};
use talpf_runtime::Monitor;

use super::output::Output;
use super::progress_bar::ProgressBar;
use super::recordings::Recordings;
use super::report::{self, Report};
use super::run_options::{RunOptions, variant_of};
use super::signal_handler::SignalHandler;
use super::trace_output::TraceOutput;

/// Options of the command of an application `A` with a problem described by `P`.
#[derive(Args, Debug)]
#[command(allow_negative_numbers = true)]
pub(super) struct Options<A: App, P: Args> {
    /// Variant of the parallel execution
    #[arg(long, value_parser = variant_of::<A>(), default_value = A::USUAL.name())]
    variant: Variant,

    #[command(flatten)]
    problem: P,

    #[command(flatten)]
    run: RunOptions,

    #[arg(skip)]
    app: PhantomData<A>,
}

impl<A: App, P: Args> Options<A, P> {
    /// Runs the described `problem`.
    pub(super) fn run(
        self,
        problem: impl FnOnce(&P) -> Result<A::Problem, Error>,
    ) -> Result<(), Error> {
        run::<A>(self.variant, &problem(&self.problem)?, &self.run)
    }
}

/// Runs `variant`. Outputs are opened before the run, and written even if the check fails; if the
/// run fails, its trace and its graph are written.
fn run<A: App>(variant: Variant, problem: &A::Problem, options: &RunOptions) -> Result<(), Error> {
    let machine = options.machine::<A>(variant, problem)?;
    let first = machine.transport().has_first_rank();
    let data = bytes::<A>(variant, problem, machine, options.check);
    memory::require(data, variant, machine)?;
    let open =
        |path: &Option<PathBuf>| path.as_deref().filter(|_| first).map(Output::open).transpose();
    let (image, json) = (open(&options.image)?, open(&options.json)?);
    let drawing = open(&options.graph)?;
    let open = |dir: &PathBuf| -> Result<TraceOutput, Error> {
        let limits = options.trace.limits(variant, &machine)?;
        TraceOutput::open(dir, A::NAME, machine, limits, options.trace.report)
    };
    let trace = options.trace.trace.as_ref().map(open).transpose()?;
    let mut recordings = Recordings::new(trace, drawing);
    Output::must_all_differ(image.iter().chain(&json).chain(recordings.outputs()))?;

    if let Some(trace) = recordings.trace.as_mut().filter(|_| options.trace.trace_spill) {
        trace.spill(&machine, report::comments::<A>(variant, problem, &machine))?;
    }

    let solve = |variant: Variant, machine: Machine, observer: Observer| {
        let (_bar, progress) =
            ProgressBar::start(variant.name(), problem.steps(), options.quiet || !first);
        run::run::<A>(variant, problem, machine, &Observer { progress, ..observer })
    };
    let (monitor, interrupt) = (Monitor::default(), Interrupt::default());
    let other_metrics = OtherMetrics::default();
    let overshoot = Overshoot::default();
    // A launcher ends all processes of a run once one has failed, and all have something to write.
    let spared = if recordings.trace.is_some() && machine.processes() > 1 { 2 } else { 0 };
    let _signals =
        SignalHandler::start(monitor.clone(), interrupt.clone(), spared).map_err(Error::Signals)?;
    let observer = Observer {
        recorder: recordings.trace.as_ref().map(TraceOutput::recorder),
        monitor: monitor.clone(),
        graph: recordings.graph(),
        other_metrics: other_metrics.clone(),
        interrupt,
        overshoot: overshoot.clone(),
        ..Observer::default()
    };
    let solution = match solve(variant, machine, observer) {
        Ok(Some(solution)) => solution,
        Ok(None) => {
            let comments = report::comments::<A>(variant, problem, &machine);
            return recordings.write(&machine, comments).map(drop);
        }
        Err(error) => {
            let mut comments = report::comments::<A>(variant, problem, &machine);
            comments.push(format!("failed: {error}"));
            // The error of the run is more important than one of writing its recordings.
            let recorded = recordings.write(&machine, comments);
            let _ = recorded.and_then(|lines| super::print(&report::text(&lines)));
            return Err(error);
        }
    };
    let comments = report::comments::<A>(variant, problem, &solution.machine);
    let recorded = recordings.write(&solution.machine, comments);
    let serial = || solve(Variant::Serial, Machine::ONE, Observer::default());
    let serial = if options.check { serial()? } else { None };
    let difference = serial.map(|serial| solution.result.difference(&serial.result));

    let verified = difference.as_ref().map(Option::is_none);
    let metrics = monitor.metrics().map(|own| other_metrics.with_own(own));
    let (tickets, overshoot) = (other_metrics.tickets(), overshoot.sums());
    let metrics = metrics.map(|metrics| (metrics, tickets));
    let report = Report::new::<A>(variant, problem, &solution, verified, metrics, overshoot);
    let mut lines = report.lines(solution.result.hash());
    let recorded = recorded.map(|recorded| lines.extend(recorded));
    super::print(&report::text(&lines))?;
    recorded?;
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

/// Returns the largest number of bytes needed: a check runs serial while the result is kept.
fn bytes<A: App>(variant: Variant, problem: &A::Problem, machine: Machine, check: bool) -> u64 {
    let bytes = run::bytes::<A>(variant, problem, machine);
    if check {
        let serial = A::bytes(Variant::Serial, problem, 1);
        bytes.max(serial.saturating_add(problem.result_bytes()))
    } else {
        bytes
    }
}

#[cfg(test)]
mod tests;
