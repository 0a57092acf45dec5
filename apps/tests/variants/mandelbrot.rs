//! Every variant gives the counts of serial, whichever rank has counted a piece.

use talpf_apps::mandelbrot::{Mandelbrot, Problem};
use talpf_apps::run::{App, Variant};

use crate::{check, progress_is_counted};

/// Rows, iterations, rows of a piece, and steps.
const SHAPES: [[usize; 4]; 4] = [[40, 60, 3, 4], [17, 100, 2, 3], [16, 1, 1, 1], [9, 30, 1, 20]];

fn problem([size, limit, block, steps]: [usize; 4]) -> Problem {
    Problem::new(size, limit, block, steps).unwrap()
}

#[test]
fn every_variant_is_serial_on_any_number_of_ranks_and_workers() {
    for &variant in &Mandelbrot::VARIANTS[1..] {
        for shape in SHAPES {
            let ranks: &[usize] = if variant == Variant::ForkJoin { &[1] } else { &[1, 2, 3, 8] };
            check::<Mandelbrot>(variant, &problem(shape), ranks, &[1, 2, 4]);
        }
    }
}

#[test]
fn progress_counts_every_step_once() {
    progress_is_counted::<Mandelbrot>(&problem([20, 30, 2, 9]));
}
