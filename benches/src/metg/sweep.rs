//! Sweep over iterations per task, downwards until half of the peak rate is lost.
//!
//! All contenders run one number of iterations, several times alternately, before any runs the
//! next. A contender that is below half of the peak in every repetition drops out on the way down;
//! one that was below it at the start goes up from there instead.

use std::sync::Arc;

use super::efficiency::{HALF, Sample, metg};
use super::work::{Contender, Work};
use super::{Graph, Kernel};
use crate::error::Error;

/// Contender with its peak.
pub struct Entrant {
    /// Runtime that runs the graph.
    pub contender: Box<dyn Contender>,
    /// Iterations per second on all cores, without tasks.
    pub peak: f64,
}

/// Settings of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Runs of every contender with each number of iterations.
    pub repetitions: usize,
    /// Initial number of iterations.
    pub begin: u64,
    /// Largest number of iterations.
    pub most: u64,
    /// Cores that every contender runs on.
    pub cores: usize,
}

/// Measures METG(50 %) in microseconds of each entrant, one for each repetition. `None` if no tried
/// granularity reaches half of the peak.
///
/// **Errors**: those of the entrants, and a wrong result.
pub fn sweep(
    entrants: &mut [Entrant],
    graph: &Arc<Graph>,
    kernel: Kernel,
    plan: &Plan,
) -> Result<Vec<Vec<Option<f64>>>, Error> {
    let mut curves = vec![Curves(vec![Vec::new(); plan.repetitions]); entrants.len()];
    let mut run = |iterations: u64, curves: &mut [Curves], is_in: fn(&Curves) -> bool| {
        let work = Work { graph: Arc::clone(graph), kernel, iterations };
        run_level(entrants, &work, plan, curves, is_in)
    };
    let mut iterations = plan.begin;
    while iterations > 0 && run(iterations, &mut curves, |curves| !curves.are_below())? {
        iterations /= 2;
    }
    iterations = plan.begin * 2;
    while iterations <= plan.most && run(iterations, &mut curves, |curves| !curves.are_above())? {
        iterations *= 2;
    }
    Ok(curves.iter().map(Curves::metg).collect())
}

/// Runs one number of iterations for all entrants still in. Returns `true` if any is.
fn run_level(
    entrants: &mut [Entrant],
    work: &Work,
    plan: &Plan,
    curves: &mut [Curves],
    is_in: fn(&Curves) -> bool,
) -> Result<bool, Error> {
    let is_in: Vec<bool> = curves.iter().map(is_in).collect();
    for repetition in 0..plan.repetitions {
        for (index, entrant) in entrants.iter_mut().enumerate().filter(|(index, _)| is_in[*index]) {
            curves[index].add(repetition, entrant.sample(work, plan.cores)?);
        }
    }
    Ok(is_in.contains(&true))
}

/// Samples of an entrant, by repetition.
#[derive(Clone)]
struct Curves(Vec<Vec<Sample>>);

impl Curves {
    fn add(&mut self, repetition: usize, sample: Sample) {
        self.0[repetition].push(sample);
    }

    /// Returns `true` if the last sample of every repetition falls short.
    fn are_below(&self) -> bool {
        self.0.iter().all(|curve| curve.last().is_some_and(|sample| sample.efficiency < HALF))
    }

    /// Returns `true` if every repetition has a sample that does not fall short.
    fn are_above(&self) -> bool {
        self.0.iter().all(|curve| curve.iter().any(|sample| sample.efficiency >= HALF))
    }

    fn metg(&self) -> Vec<Option<f64>> {
        self.0.iter().map(|curve| metg(curve, HALF)).collect()
    }
}

impl Entrant {
    /// Runs the work once and checks the result.
    ///
    /// **Errors**: those of the contender, and a wrong result.
    pub fn sample(&mut self, work: &Work, cores: usize) -> Result<Sample, Error> {
        let run = self.contender.run(work)?;
        let expected = work.graph.checksum();
        if run.checksum != expected {
            let Work { graph, iterations, .. } = work;
            let what = format!(
                "{} of {} x {} with {iterations} iterations",
                graph.pattern(),
                graph.steps(),
                graph.width()
            );
            let contender = self.contender.name();
            return Err(Error::WrongResult { contender, what, expected, found: run.checksum });
        }
        let (seconds, tasks) = (run.elapsed.as_secs_f64(), work.graph.tasks() as f64);
        Ok(Sample {
            granularity_us: seconds * cores as f64 / tasks * 1e6,
            efficiency: tasks * work.iterations as f64 / seconds / self.peak,
        })
    }
}
