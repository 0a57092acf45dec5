//! METG(50 %), the smallest task that reaches half of the peak rate, over the patterns of Task
//! Bench.
//!
//! A graph has `steps x width` points, each a task that depends on points of the previous step. A
//! task runs a kernel for a number of iterations. METG(50 %) is the smallest granularity - core
//! time per task - at which the iterations per second are half of those that the kernel alone
//! reaches on all cores. Every run is checked: a task leaves a checksum of its inputs.

mod checksum;
mod countdown;
pub mod efficiency;
mod graph;
mod kernel;
mod ours;
mod pattern;
mod peers;
mod replay;
pub mod sweep;
#[cfg(test)]
mod tests;
pub mod work;

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use talpf_runtime::cores;
use talpf_traces::counted;

pub use self::graph::Graph;
pub use self::kernel::Kernel;
pub use self::ours::Ours;
pub use self::pattern::Pattern;
pub use self::peers::{OpenMp, Rayon, Tokio};
use self::sweep::{Entrant, Plan, sweep};
use self::work::Contender;
use crate::conditions;
use crate::contest::Contest;
use crate::error::Error;
use crate::measure::Report;
use crate::print_line::print_line;

/// Selection of measurements.
#[derive(Clone, Debug)]
pub struct Options {
    /// Patterns; empty for all.
    pub patterns: Vec<Pattern>,
    /// Points of a step; empty for the number of cores, and 32.
    pub widths: Vec<usize>,
    /// Kernels; empty for all.
    pub kernels: Vec<Kernel>,
    /// `true` if peers run too.
    pub peers: bool,
    /// Few steps and repetitions, for a first impression.
    pub quick: bool,
}

/// Dependences of a point in the patterns that take a radix.
const RADIX: usize = 5;
/// Width of the wide graphs.
const WIDE: usize = 32;
/// Duration of the first tasks of a sweep.
const BEGIN: Duration = Duration::from_micros(10);
/// Largest factor over the first tasks that a sweep goes up to; the quick mode uses less.
const MOST: u64 = 32;
const MOST_QUICKLY: u64 = 4;

/// Measures METG(50 %).
///
/// **Errors**: those of the contenders, and a wrong result. A peer that is not installed is
/// reported and left out.
pub fn run(options: &Options) -> Result<Report, Error> {
    let repetitions = if options.quick { 3 } else { 5 };
    let cores = cores();
    print_line(format_args!(
        "# METG(50 %): {}, {}, idle policy {}, radix {RADIX}, no randomness but a \
         fixed one, median [min .. max] of {repetitions}",
        conditions::machine(),
        counted(cores, "worker"),
        conditions::runtime(cores)?.idle,
    ));
    let mut contenders: Vec<Box<dyn Contender>> =
        vec![Box::new(Ours::discovering()?), Box::new(Ours::replaying()?)];
    if options.peers {
        contenders.extend(peers()?);
    }
    let mut report = Report::new("");
    for kernel in or_all(&options.kernels, Kernel::value_variants()) {
        let mut entrants = enter(contenders, kernel)?;
        let begin = iterations_in(BEGIN, &entrants[0], cores);
        let most = begin * if options.quick { MOST_QUICKLY } else { MOST };
        let plan = Plan { repetitions, begin, most, cores };
        for pattern in or_all(&options.patterns, Pattern::value_variants()) {
            for width in or_all(&options.widths, &[cores, WIDE]) {
                let graph = Arc::new(Graph::new(pattern, width, steps(width, options), RADIX));
                measure(&mut entrants, &graph, kernel, &plan, &mut report)?;
            }
        }
        contenders = entrants.into_iter().map(|entrant| entrant.contender).collect();
    }
    Ok(report)
}

fn or_all<T: Copy>(chosen: &[T], all: &[T]) -> Vec<T> {
    if chosen.is_empty() { all.to_vec() } else { chosen.to_vec() }
}

/// Returns the number of steps, for about 2,000 tasks in narrow graphs and 8,000 in wide ones; a
/// twentieth of that in the quick mode.
fn steps(width: usize, options: &Options) -> usize {
    let steps = if width < WIDE { 1000 } else { 250 };
    if options.quick { steps / 20 } else { steps }
}

/// Returns the power of two of iterations that one core runs in about `time`.
fn iterations_in(time: Duration, entrant: &Entrant, cores: usize) -> u64 {
    let iterations = entrant.peak / cores as f64 * time.as_secs_f64();
    (iterations as u64).next_power_of_two()
}

fn peers() -> Result<Vec<Box<dyn Contender>>, Error> {
    print_line(format_args!(
        "# rayon and tokio know the graph in advance; openmp and talpf discover it"
    ));
    let mut peers: Vec<Box<dyn Contender>> = Vec::new();
    match OpenMp::compile() {
        Ok(openmp) => {
            print_line(format_args!("# openmp: {}", crate::peer::version("gcc")?));
            peers.push(Box::new(openmp));
        }
        Err(missing @ Error::NotInstalled { .. }) => {
            print_line(format_args!("# openmp: missing, {missing}"))
        }
        Err(error) => return Err(error),
    }
    peers.push(Box::new(Rayon::start()?));
    peers.push(Box::new(Tokio::start()?));
    Ok(peers)
}

fn enter(contenders: Vec<Box<dyn Contender>>, kernel: Kernel) -> Result<Vec<Entrant>, Error> {
    let mut entrants = Vec::new();
    for mut contender in contenders {
        let peak = contender.peak(kernel)?;
        let (name, rate) = (contender.name(), peak / 1e6);
        print_line(format_args!(
            "# {} kernel, {name}: peak {rate:.0} M iterations/s",
            kernel.name()
        ));
        entrants.push(Entrant { contender, peak });
    }
    Ok(entrants)
}

fn measure(
    entrants: &mut [Entrant],
    graph: &Arc<Graph>,
    kernel: Kernel,
    plan: &Plan,
    report: &mut Report,
) -> Result<(), Error> {
    let (pattern, width) = (graph.pattern(), graph.width());
    let figure = match kernel {
        Kernel::Compute => format!("metg.{pattern}_{width}_us"),
        Kernel::Memory => format!("metg.{pattern}_{width}_memory_us"),
    };
    let found = sweep(entrants, graph, kernel, plan)?;
    let mut contest = Contest::default();
    for (entrant, repetitions) in entrants.iter().zip(found) {
        let name = entrant.contender.name();
        if repetitions.iter().all(Option::is_none) {
            print_line(format_args!("# {figure}: {name} stays below half of the peak"));
        }
        for (round, metg) in repetitions.into_iter().enumerate() {
            metg.into_iter().for_each(|metg| contest.record(round, name, &figure, metg));
        }
    }
    contest.report(report);
    Ok(())
}
