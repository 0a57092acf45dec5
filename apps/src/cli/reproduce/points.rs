//! Runs of all points, on as many threads as this machine has cores.
//!
//! A run in virtual time has the same result on any thread, so its neighbours do not change it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use talpf_apps::Error;
use talpf_apps::gauss_seidel::GaussSeidel;
use talpf_apps::jacobi::Jacobi;
use talpf_apps::matmul::Matmul;
use talpf_apps::nbody::Nbody;
use talpf_apps::run::{self, App, Machine, Observer, Progress, Simulation, Variant};
use talpf_runtime::cores;

use super::figures::{Figure, Problem, Size};

/// Outcome of a run in virtual time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) variant: Variant,
    pub(super) ranks: usize,
    /// Virtual time of the run.
    pub(super) seconds: f64,
    /// Millions of units of work in a second.
    pub(super) rate: f64,
}

/// Runs all points of `figures`. Returns them by figure.
///
/// **Errors**: the first one of a run.
pub(super) fn measure(
    figures: &[&Figure],
    size: Size,
    machine: Simulation,
    progress: &Progress,
) -> Result<Vec<Vec<Point>>, Error> {
    let of = |(index, figure): (usize, &&Figure)| {
        figure.points(size).into_iter().map(move |(variant, ranks)| (index, variant, ranks))
    };
    let mut planned: Vec<_> = figures.iter().enumerate().flat_map(of).collect();
    // Long runs first, so that the threads end together.
    planned.sort_by_key(|(_, _, ranks)| std::cmp::Reverse(*ranks));
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(&(index, variant, ranks)) = planned.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let point = run_point(figures[index], size, variant, ranks, machine);
            let has_failed = point.is_err();
            if let Ok(mut results) = results.lock() {
                results.push((index, point));
            }
            progress.advance();
            if has_failed {
                next.store(planned.len(), Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..cores() {
            scope.spawn(work);
        }
        work();
    });
    let mut by_figure = vec![Vec::new(); figures.len()];
    for (index, point) in results.into_inner().unwrap_or_default() {
        by_figure[index].push(point?);
    }
    for (figure, points) in figures.iter().zip(&mut by_figure) {
        let order = figure.points(size);
        points.sort_by_key(|point: &Point| {
            order.iter().position(|known| *known == (point.variant, point.ranks))
        });
    }
    Ok(by_figure)
}

fn run_point(
    figure: &Figure,
    size: Size,
    variant: Variant,
    ranks: usize,
    simulation: Simulation,
) -> Result<Point, Error> {
    let machine = Machine::new(ranks, 1)?.simulated(simulation);
    match figure.problem(size, ranks)? {
        Problem::Jacobi(problem) => solve::<Jacobi>(variant, &problem, machine),
        Problem::GaussSeidel(problem) => solve::<GaussSeidel>(variant, &problem, machine),
        Problem::Nbody(problem) => solve::<Nbody>(variant, &problem, machine),
        Problem::Matmul(problem) => solve::<Matmul>(variant, &problem, machine),
    }
}

fn solve<A: App>(variant: Variant, problem: &A::Problem, machine: Machine) -> Result<Point, Error> {
    let solution = run::run::<A>(variant, problem, machine, &Observer::default())?;
    let solution = solution.expect("all ranks are in this process");
    let seconds = solution.seconds.max(1e-9);
    let rate = run::Problem::work(problem).amount / seconds / 1e6;
    Ok(Point { variant, ranks: machine.ranks(), seconds, rate })
}
