//! Every variant of every application gives the bits of its serial one.

mod gauss_seidel;
mod histogram;
mod jacobi;
mod kmeans;
mod mandelbrot;
mod matmul;
mod nbody;
mod replay;
mod tolerance;

use talpf_apps::run::{self, App, Machine, Observer, Outcome, Problem, Variant};

/// Checks that the result of `variant` equals that of serial on every machine that fits.
#[track_caller]
fn check<A: App>(variant: Variant, problem: &A::Problem, ranks: &[usize], workers: &[usize]) {
    check_each::<A>(variant, problem, ranks, workers, |machine| machine);
}

/// Checks like [`check`], on machines with a change.
#[track_caller]
fn check_each<A: App>(
    variant: Variant,
    problem: &A::Problem,
    ranks: &[usize],
    workers: &[usize],
    change: impl Fn(Machine) -> Machine,
) {
    let observer = Observer::default();
    let serial = run::run::<A>(Variant::Serial, problem, Machine::ONE, &observer).unwrap().unwrap();
    assert_eq!(serial.machine, Machine::ONE);
    for &ranks in ranks.iter().filter(|&&ranks| A::check_ranks(problem, ranks).is_ok()) {
        for &workers in workers {
            let machine = change(Machine::new(ranks, workers).unwrap());
            let solution = run::run::<A>(variant, problem, machine, &observer).unwrap().unwrap();
            let name = variant.name();
            let run = format!("{name} of {:?} on {ranks} x {workers}", problem.parameters());
            assert_eq!(solution.result.difference(&serial.result), None, "{run}");
            assert_eq!(solution.result.hash(), serial.result.hash(), "{run}");
            assert!(solution.machine.workers() <= workers, "{run}");
            if variant.has_ranks() {
                assert_eq!(solution.machine, machine, "{run}");
            }
            assert!(solution.seconds > 0.0, "{run}");
        }
    }
}

/// Checks that every variant counts each step once.
#[track_caller]
fn progress_is_counted<A: App>(problem: &A::Problem) {
    for &variant in A::VARIANTS {
        let observer = Observer::default();
        let machine = Machine::new(A::RANKS, 3).unwrap();
        run::run::<A>(variant, problem, machine, &observer).unwrap();
        assert_eq!(observer.progress.steps(), problem.steps(), "{}", variant.name());
    }
}
