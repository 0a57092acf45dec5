//! Serial counts every number, and every other variant gives its counts.

use talpf_apps::histogram::{Histogram, Problem, kernel, serial};
use talpf_apps::run::{App, Observer, Variant};

use crate::{check, progress_is_counted};

/// Numbers, bins, block and steps.
const SHAPES: [[usize; 4]; 6] = [
    [1_000, 16, 64, 3],
    [1_001, 13, 100, 4],
    [1, 1, 1, 2],
    // Ranks without numbers; blocks that are larger than a share.
    [3, 40, 7, 2],
    [500, 3, 1_000, 2],
    [77, 200, 5, 1],
];

fn problem([numbers, bins, block, steps]: [usize; 4], aggregates: bool) -> Problem {
    Problem::new(numbers, bins, block, steps, aggregates).unwrap()
}

#[test]
fn serial_counts_every_number_once() {
    let problem = problem(SHAPES[1], true);
    let counts = serial::solve(&problem, &Observer::default()).result;
    for bin in 0..13 {
        let numbers = (0..4).flat_map(|step| (0..1_001).map(move |index| (step, index)));
        let count = numbers.filter(|&(step, index)| kernel::bin(step, index, 13) == bin).count();
        assert_eq!(counts.cells()[bin], count as f64);
    }
}

#[test]
fn every_variant_is_serial_on_any_number_of_ranks_and_workers() {
    for &variant in &Histogram::VARIANTS[1..] {
        for aggregates in [true, false] {
            for shape in SHAPES {
                let ranks: &[usize] =
                    if variant == Variant::ForkJoin { &[1] } else { &[1, 2, 3, 8] };
                check::<Histogram>(variant, &problem(shape, aggregates), ranks, &[1, 2, 4]);
            }
        }
    }
}

#[test]
fn progress_counts_every_step_once() {
    progress_is_counted::<Histogram>(&problem([200, 8, 50, 9], true));
}
