//! Runs with a tolerance end after the same step as serial, with its residual and its bits.

use proptest::prelude::*;
use talpf_apps::Matrix;
use talpf_apps::gauss_seidel::{self, GaussSeidel};
use talpf_apps::heat::{self, Problem};
use talpf_apps::jacobi::{self, Jacobi};
use talpf_apps::run::{self, App, Machine, Observer, Outcome, Variant};

use crate::{check, check_each};

fn problem([rows, cols, block, steps]: [usize; 4], tolerance: f64) -> Problem {
    let problem = Problem::new(rows, cols, block, steps, heat::default_sources()).unwrap();
    problem.in_single_blocks(true).until(Some(tolerance)).unwrap()
}

fn largest_change(old: &Matrix, new: &Matrix) -> f64 {
    old.cells().iter().zip(new.cells()).map(|(old, new)| (new - old).abs()).fold(0.0, f64::max)
}

/// Checks that serial ends 16 steps after the first sixteenth step with a small residual.
#[track_caller]
fn serial_ends_by_the_rule<A: App<Problem = Problem, Outcome = heat::Temperatures>>() {
    let after = |steps: usize| {
        let whole = Problem::new(13, 11, 4, steps, heat::default_sources()).unwrap();
        let solution =
            run::run::<A>(Variant::Serial, &whole, Machine::ONE, &Observer::default()).unwrap();
        solution.unwrap().result.matrix
    };
    let residual = |steps: usize| match steps {
        1 => largest_change(&problem([13, 11, 4, 1], 0.0).initial_matrix(), &after(1)),
        _ => largest_change(&after(steps - 1), &after(steps)),
    };
    for (tolerance, limit) in [(0.1, 1000), (1e-2, 1000), (1e-3, 1000), (1e-3, 40), (1e9, 1000)] {
        let checked = (16..).step_by(16).find(|&steps| residual(steps) <= tolerance).unwrap();
        let expected = limit.min(checked + 16);
        let observer = Observer::default();
        let problem = problem([13, 11, 4, limit], tolerance);
        let solution = run::run::<A>(Variant::Serial, &problem, Machine::ONE, &observer);
        let result = solution.unwrap().unwrap().result;
        let end = result.convergence.unwrap();
        assert_eq!((end.steps, end.residual), (expected, residual(expected)), "{tolerance}");
        assert_eq!(result.matrix.first_difference(&after(expected)), None);
        assert_eq!(observer.progress.steps(), expected);
    }
}

#[test]
fn serial_ends_a_period_after_a_small_residual() {
    serial_ends_by_the_rule::<Jacobi>();
    serial_ends_by_the_rule::<GaussSeidel>();
}

#[test]
fn without_a_tolerance_there_is_no_residual() {
    let problem = Problem::new(9, 9, 4, 40, heat::default_sources()).unwrap();
    let observer = Observer::default();
    assert_eq!(jacobi::serial::solve(&problem, &observer).result.convergence, None);
    assert_eq!(gauss_seidel::serial::solve(&problem, &observer).result.convergence, None);
}

/// Checks every variant, spawned and replayed, against serial.
#[track_caller]
fn check_all<A: App<Problem = Problem>>(problem: &Problem, ranks: &[usize], workers: &[usize]) {
    for &variant in &A::VARIANTS[1..] {
        let ranks = if variant.has_ranks() { ranks } else { &[1] };
        check::<A>(variant, problem, ranks, workers);
    }
    for &variant in A::REPLAYED {
        check_each::<A>(variant, problem, ranks, workers, |machine| machine.replaying(true));
    }
}

#[test]
fn every_variant_ends_as_serial_does() {
    let (few, all) = ((&[2][..], &[2][..]), (&[1, 2, 7][..], &[1, 3][..]));
    for (tolerance, steps, (ranks, workers)) in
        [(1e-1, 1000, all), (0.0, 37, few), (1e9, 1000, few), (1e9, 1, all)]
    {
        let problem = problem([19, 13, 4, steps], tolerance);
        check_all::<Jacobi>(&problem, ranks, workers);
        check_all::<GaussSeidel>(&problem, ranks, workers);
    }
}

#[test]
fn strips_of_several_blocks_end_as_serial_does() {
    let problem = problem([9, 300, 7, 1000], 1e-2).in_single_blocks(false);
    check_all::<Jacobi>(&problem, &[2], &[2]);
    check_all::<GaussSeidel>(&problem, &[2], &[2]);
}

#[test]
fn grids_end_as_serial_does() {
    let problem = problem([19, 13, 4, 1000], 1e-2).on_grid(Some([2, 3]));
    for variant in [Variant::Lpf, Variant::TalpfCached, Variant::TalpfGet, Variant::Tampi] {
        check::<Jacobi>(variant, &problem, &[6], &[2]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_problem_ends_as_serial_does(
        shape in [1_usize..40, 1_usize..40, 1_usize..12, 1_usize..120],
        exponent in -5.0_f64..1.0,
        (ranks, workers) in (1_usize..9, 1_usize..5),
        (replay, of_jacobi, variant) in (any::<bool>(), any::<bool>(), 0_usize..16),
    ) {
        let problem = problem(shape, 10_f64.powf(exponent));
        let ranks = [ranks.min(shape[0])];
        fn choose<A: App>(replay: bool, index: usize) -> Variant {
            let variants = if replay { A::REPLAYED } else { &A::VARIANTS[1..] };
            variants[index % variants.len()]
        }
        let change = |machine: Machine| machine.replaying(replay);
        if of_jacobi {
            check_each::<Jacobi>(choose::<Jacobi>(replay, variant), &problem, &ranks, &[workers], change);
        } else {
            let variant = choose::<GaussSeidel>(replay, variant);
            check_each::<GaussSeidel>(variant, &problem, &ranks, &[workers], change);
        }
    }
}

#[test]
fn ranks_that_would_wait_for_each_other_are_refused() {
    let problem = problem([40, 5, 5, 1000], 1e-1);
    check::<GaussSeidel>(Variant::TalpfDefault, &problem, &[33], &[2]);
    check::<GaussSeidel>(Variant::TalpfLanes, &problem, &[34, 40], &[2]);
    check::<GaussSeidel>(Variant::TalpfNotify, &problem, &[34, 40], &[2]);
    check::<GaussSeidel>(Variant::Tampi, &problem, &[40], &[2]);
    let machine = Machine::new(34, 2).unwrap();
    let observer = Observer::default();
    let refused = run::run::<GaussSeidel>(Variant::TalpfDefault, &problem, machine, &observer);
    let expected = "ranks is 34, expected at most 33 for talpf-default with a tolerance";
    assert_eq!(refused.unwrap_err().to_string(), expected);
}

#[test]
fn ends_that_differ_are_found() {
    let of = |steps, tolerance| {
        jacobi::serial::solve(&problem([9, 9, 4, steps], tolerance), &Observer::default()).result
    };
    let (short, long) = (of(20, 0.0), of(21, 0.0));
    let (place, found, expected) = short.difference(&long).unwrap();
    assert_eq!((place.as_str(), found, expected), ("the number of steps", 20.0, 21.0));
    let mut other = short.clone();
    other.convergence.as_mut().unwrap().residual = 0.5;
    let (place, found, _) = other.difference(&short).unwrap();
    assert_eq!((place.as_str(), found), ("the residual", 0.5));
    assert_ne!(Outcome::hash(&other), Outcome::hash(&short));
    assert_eq!(short.difference(&short.clone()), None);
}
