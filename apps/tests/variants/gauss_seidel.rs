//! Serial gives the bits of the textbook formula, and every other variant those of serial.

use talpf_apps::Matrix;
use talpf_apps::gauss_seidel::{GaussSeidel, Problem, serial};
use talpf_apps::heat;
use talpf_apps::run::{Observer, Variant};

use crate::{check, progress_is_counted};

/// Rows, columns, block and steps.
const SHAPES: [[usize; 4]; 10] = [
    [64, 64, 16, 10],
    [65, 33, 16, 7],
    [61, 67, 8, 12],
    [1, 1, 1, 5],
    [1, 100, 7, 3],
    [100, 1, 7, 3],
    [17, 200, 1000, 4],
    [7, 7, 2, 1],
    [130, 70, 64, 2],
    // More block columns than lanes.
    [5, 300, 1, 3],
];

const WITH_RANKS: [Variant; 6] = [
    Variant::Lpf,
    Variant::TalpfDefault,
    Variant::TalpfLanes,
    Variant::TalpfNotify,
    Variant::Tampi,
    Variant::TampiBlocking,
];

fn problem([rows, cols, block, steps]: [usize; 4]) -> Problem {
    let problem = Problem::new(rows, cols, block, steps, heat::default_sources()).unwrap();
    problem.in_single_blocks(true)
}

fn textbook(problem: &Problem) -> Matrix {
    let mut matrix = problem.initial_matrix();
    for _ in 0..problem.steps() {
        for row in 1..=problem.rows() {
            for col in 1..=problem.cols() {
                let (up, down) = (matrix.row(row - 1)[col], matrix.row(row + 1)[col]);
                let (left, right) = (matrix.row(row)[col - 1], matrix.row(row)[col + 1]);
                matrix.row_mut(row)[col] = 0.25 * (((up + down) + right) + left);
            }
        }
    }
    matrix
}

#[test]
fn serial_is_the_textbook() {
    for shape in SHAPES {
        let problem = problem(shape);
        let solution = serial::solve(&problem, &Observer::default());
        assert_eq!(solution.result.first_difference(&textbook(&problem)), None, "{shape:?}");
    }
}

#[test]
fn fork_join_is_serial_for_any_number_of_workers() {
    for shape in SHAPES {
        check::<GaussSeidel>(Variant::ForkJoin, &problem(shape), &[1], &[1, 2, 3, 8]);
    }
}

#[test]
fn tasks_are_serial_on_any_number_of_ranks_and_workers() {
    for variant in WITH_RANKS {
        let problem = problem([61, 67, 8, 12]);
        check::<GaussSeidel>(variant, &problem, &[1, 2, 4, 7, 16], &[1, 3]);
    }
}

#[test]
fn tasks_are_serial_for_any_shape() {
    for variant in WITH_RANKS {
        for shape in SHAPES {
            check::<GaussSeidel>(variant, &problem(shape), &[1, 3, shape[0].min(16)], &[2]);
        }
    }
}

#[test]
fn every_variant_is_serial_with_several_strips_side_by_side() {
    // Strips of 259 columns and of 256: the last ones of 83 and of one.
    for shape in [[9, 601, 7, 6], [9, 257, 16, 6]] {
        let problem = problem(shape).in_single_blocks(false);
        check::<GaussSeidel>(Variant::ForkJoin, &problem, &[1], &[1, 2, 3]);
        for variant in WITH_RANKS {
            check::<GaussSeidel>(variant, &problem, &[1, 3, 9], &[1, 2]);
        }
    }
}

#[test]
fn progress_counts_every_step_once() {
    progress_is_counted::<GaussSeidel>(&problem([20, 20, 4, 17]));
}
