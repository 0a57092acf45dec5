//! Running all points.

use talpf_apps::Error;
use talpf_apps::run::{self, App, Machine, Observer, Outcome, Problem, Variant};
use talpf_runtime::cores;
use talpf_traces::Recorder;

use super::super::progress_bar::ProgressBar;
use super::results::{Point, Way};
use super::trace_metrics::TraceMetrics;
use super::{Scaling, Settings};

/// What is to be run.
pub(super) struct Planned<A: App> {
    variant: Variant,
    problem: A::Problem,
    machine: Machine,
}

/// All points: serial first, because all are compared with it; variants without ranks once.
///
/// **Errors**: a number of ranks that the problem has no use for; nothing that can be replayed, if
/// that was asked for.
pub(super) fn points<A: App>(
    variants: &[Variant],
    problem: &A::Problem,
    settings: &Settings,
) -> Result<Vec<Planned<A>>, Error> {
    let default_ranks = (0..4).map(|n| if A::RANKS == 4 { (n + 1) * (n + 1) } else { 1 << n });
    let mut ranks = settings.ranks.clone();
    if ranks.is_empty() {
        ranks.extend(default_ranks.filter(|&ranks| A::check_ranks(problem, ranks).is_ok()));
    }
    ranks.sort_unstable();
    ranks.dedup();
    let chosen = |variant: &Variant| {
        *variant == Variant::Serial || variants.is_empty() || variants.contains(variant)
    };
    let can = |way: &Way| !way.replay || A::REPLAYED.contains(&way.variant);
    let manners: &[bool] = if settings.replay { &[false, true] } else { &[false] };
    let both = |&variant| manners.iter().map(move |&replay| Way { variant, replay });
    let ways = A::VARIANTS.iter().filter(|variant| chosen(variant)).flat_map(both).filter(can);
    let ways: Vec<Way> = ways.collect();
    if settings.replay && !ways.iter().any(|way| way.replay) {
        let variant = "what is compared";
        return Err(Error::NoReplay { app: A::NAME, variant, replayed: A::REPLAYED });
    }
    let mut points = Vec::new();
    for way in ways {
        for &ranks in if way.variant.has_ranks() { &ranks[..] } else { &[1] } {
            let factor = if settings.scaling == Scaling::Weak { ranks } else { 1 };
            let problem = problem.scaled(factor)?;
            A::check_ranks(&problem, ranks)?;
            let machine = settings.machine.with_ranks(ranks)?.replaying(way.replay);
            points.push(Planned { variant: way.variant, problem, machine });
        }
    }
    Ok(points)
}

/// Runs all points in rounds, first with a trace and then timed.
///
/// **Errors**: those of the runs; [`Error::Differs`] when results of one problem do.
pub(super) fn measure<A: App>(
    points: &[Planned<A>],
    settings: &Settings,
) -> Result<Vec<Point>, Error> {
    let runs = points.len() * (settings.repeat + settings.traced());
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
    let mut seconds = vec![Vec::new(); points.len()];
    for _ in 0..settings.repeat {
        for (point, seconds) in points.iter().zip(&mut seconds) {
            seconds.push(point.run(&Observer::default())?.seconds.max(1e-9));
            progress.advance();
        }
    }
    let mut measured: Vec<Point> = Vec::new();
    for ((point, mut seconds), traces) in points.iter().zip(seconds).zip(traces) {
        seconds.sort_by(f64::total_cmp);
        let rate = point.problem.work().amount / seconds[seconds.len() / 2] / 1e6;
        let speedup = measured.first().map_or(1.0, |serial| rate / serial.rate);
        let workers = if point.variant == Variant::Serial { 1 } else { point.machine.workers() };
        measured.push(Point {
            way: Way { variant: point.variant, replay: point.machine.replays() },
            ranks: point.machine.ranks(),
            workers,
            seconds,
            rate,
            speedup,
            normalised: speedup / workers.min(cores()) as f64,
            traces,
        });
    }
    Ok(measured)
}

impl<A: App> Planned<A> {
    fn run(&self, observer: &Observer) -> Result<run::Solution<A::Outcome>, Error> {
        // A slow rank that this machine does not have slows nobody.
        let slow = self.machine.slowdown().filter(|slow| {
            self.variant.has_ranks() && slow.rank.is_none_or(|rank| rank < self.machine.ranks())
        });
        solve::<A>(self.variant, &self.problem, self.machine.slowed(slow), observer)
    }

    /// Serial runs again only to say where a result differs.
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
