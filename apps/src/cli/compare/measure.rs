//! Runs of all points.

use talpf_apps::Error;
use talpf_apps::run::{
    self, App, Dilation, Machine, Observer, Outcome, Problem, Simulation, Variant,
};
use talpf_runtime::cores;
use talpf_traces::Recorder;

use super::super::progress_bar::ProgressBar;
use super::super::run_options::MachineOptions;
use super::results::{Method, Point};
use super::trace_metrics::TraceMetrics;
use super::{Scaling, Settings};

/// Run to be measured.
pub(super) struct Planned<A: App> {
    variant: Variant,
    problem: A::Problem,
    machine: Machine,
}

/// Returns all points: serial first, since all are compared with it, but not on virtual cores; variants
/// without ranks once.
/// If no variants are chosen, those that cannot solve the problem are left out.
///
/// **Errors**: a number of ranks or a variant that the problem cannot use; with replay, no variant that can
/// replay.
pub(super) fn points<A: App>(
    variants: &[Variant],
    problem: &A::Problem,
    settings: &Settings,
) -> Result<Vec<Planned<A>>, Error> {
    let default_ranks = (0..4).map(|n| if A::RANKS == 4 { (n + 1) * (n + 1) } else { 1 << n });
    let mut ranks = settings.ranks.clone();
    if ranks.is_empty() {
        ranks.extend(A::ranks_of(problem));
    }
    if ranks.is_empty() {
        ranks.extend(default_ranks.filter(|&ranks| A::check_ranks(problem, ranks).is_ok()));
    }
    ranks.sort_unstable();
    ranks.dedup();
    let on_virtual_cores = settings.simulation.has_virtual_cores();
    let chosen = |variant: &Variant| match on_virtual_cores {
        true if variants.is_empty() => variant.has_ranks(),
        false if *variant == Variant::Serial || variants.is_empty() => true,
        _ => variants.contains(variant),
    };
    let can = |method: &Method| !method.replay || A::REPLAYED.contains(&method.variant);
    let replays: &[bool] = if settings.replay { &[false, true] } else { &[false] };
    let both = |&variant| replays.iter().map(move |&replay| Method { variant, replay });
    let methods = A::VARIANTS.iter().filter(|variant| chosen(variant)).flat_map(both).filter(can);
    let methods: Vec<Method> = methods.collect();
    if settings.replay && !methods.iter().any(|method| method.replay) {
        let variant = "any of these variants";
        return Err(Error::NoReplay { app: A::NAME, variant, replayed: A::REPLAYED });
    }
    let MachineOptions { workers, workers_per_rank, slow_rank, link, .. } = &settings.machine;
    let others = [
        ("--workers", workers.is_some()),
        ("--workers-per-rank", workers_per_rank.is_some()),
        ("--slow-rank", slow_rank.is_some()),
        ("--link", link.is_some()),
    ];
    let mut points = Vec::new();
    for method in methods {
        let simulation = settings.simulation.simulation::<A>(method.variant, &others)?;
        for &ranks in if method.variant.has_ranks() { &ranks[..] } else { &[1] } {
            let factor = if settings.scaling == Scaling::Weak { ranks } else { 1 };
            let problem = problem.scaled(factor)?;
            A::check_ranks(&problem, ranks)?;
            match A::check_variant(method.variant, &problem, ranks) {
                Err(_) if variants.is_empty() => continue,
                checked => checked?,
            }
            let machine = settings.machine.with_ranks(ranks)?.replaying(method.replay);
            let machine = simulation.map_or(machine, |simulation| machine.simulated(simulation));
            let machine = machine.dilated(settings.simulation.dilation());
            machine.check_dilation(method.variant)?;
            points.push(Planned { variant: method.variant, problem, machine });
        }
    }
    Ok(points)
}

/// Returns the virtual machine of the points, if they run in virtual time.
pub(super) fn simulation<A: App>(points: &[Planned<A>]) -> Option<Simulation> {
    points.first()?.machine.simulation()
}

/// Returns the virtual cores of the points, if they run in dilated time.
pub(super) fn dilation<A: App>(points: &[Planned<A>]) -> Option<Dilation> {
    points.first()?.machine.dilation()
}

/// Runs all points in rounds, first with a trace and then timed.
///
/// **Errors**: those of the runs; [`Error::Differs`] if results of one problem differ.
pub(super) fn measure<A: App>(
    points: &[Planned<A>],
    settings: &Settings,
) -> Result<Vec<Point>, Error> {
    let runs = points.len() * (settings.timed() + settings.traced());
    let on_virtual_cores = settings.simulation.has_virtual_cores();
    let (_bar, progress) = ProgressBar::start("compare", runs, settings.quiet);
    let mut expected = None;
    let mut traces = vec![Vec::new(); points.len()];
    for _ in 0..settings.traced() {
        for (point, traces) in points.iter().zip(&mut traces) {
            let recorder = Recorder::default();
            let observer = Observer { recorder: Some(recorder.clone()), ..Observer::default() };
            let solution = point.run(&observer)?;
            traces.push(TraceMetrics::new(&recorder, solution.machine, A::KERNELS)?);
            if settings.scaling == Scaling::Strong {
                let expected = expected.get_or_insert_with(|| solution.result.hash());
                point.must_equal(&solution.result, *expected)?;
            }
            progress.advance();
        }
    }
    // Seconds of every run, and the work of each.
    let observers: Vec<_> = points.iter().map(|_| Observer::default()).collect();
    let mut runs = vec![(Vec::new(), 0.0); points.len()];
    for _ in 0..settings.timed() {
        for ((point, observer), (seconds, work)) in points.iter().zip(&observers).zip(&mut runs) {
            let solution = point.run(observer)?;
            seconds.push(solution.seconds.max(1e-9));
            *work = solution.work(&point.problem).amount;
            progress.advance();
        }
    }
    let mut measured: Vec<Point> = Vec::new();
    let runs = points.iter().zip(observers).zip(runs).zip(traces);
    for (((point, observer), (mut seconds, work)), traces) in runs {
        seconds.sort_by(f64::total_cmp);
        let rate = work / seconds[seconds.len() / 2] / 1e6;
        let speedup = measured.first().map_or(1.0, |base| rate / base.rate);
        let workers = point.workers();
        let used = match on_virtual_cores {
            true => workers as f64 / points[0].workers() as f64,
            false => workers.min(cores()) as f64,
        };
        measured.push(Point {
            method: Method { variant: point.variant, replay: point.machine.replays() },
            ranks: point.machine.ranks(),
            workers,
            seconds,
            rate,
            speedup,
            normalised: speedup / used,
            overshoot: point.machine.dilation().map(|_| observer.overshoot.sums()),
            traces,
        });
    }
    Ok(measured)
}

impl<A: App> Planned<A> {
    /// Returns the number of workers, or of virtual cores, of all ranks together.
    fn workers(&self) -> usize {
        let has_virtual_cores =
            self.machine.simulation().is_some() || self.machine.dilation().is_some();
        match self.variant {
            _ if has_virtual_cores => self.machine.ranks() * self.machine.cores_of_rank(),
            Variant::Serial => 1,
            _ => self.machine.workers(),
        }
    }

    fn run(&self, observer: &Observer) -> Result<run::Solution<A::Outcome>, Error> {
        // A slow rank that this machine does not have has no effect.
        let slow = self.machine.slowdown().filter(|slow| {
            self.variant.has_ranks() && slow.rank.is_none_or(|rank| rank < self.machine.ranks())
        });
        solve::<A>(self.variant, &self.problem, self.machine.slowed(slow), observer)
    }

    /// Compares a result with the serial one. Runs serial again only to locate a difference.
    fn must_equal(&self, result: &A::Outcome, expected: u64) -> Result<(), Error> {
        if result.hash() == expected {
            return Ok(());
        }
        let observer = Observer::default();
        let serial = solve::<A>(Variant::Serial, &self.problem, Machine::ONE, &observer)?;
        match result.difference(&serial.result) {
            None => Ok(()),
            Some((place, found, expected)) => {
                Err(Error::Differs { variant: self.variant.name(), place, found, expected })
            }
        }
    }
}

fn solve<A: App>(
    variant: Variant,
    problem: &A::Problem,
    machine: Machine,
    observer: &Observer,
) -> Result<run::Solution<A::Outcome>, Error> {
    let solution = run::run::<A>(variant, problem, machine, observer)?;
    Ok(solution.expect("all ranks are in this process"))
}
