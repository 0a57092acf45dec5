//! Every variant gives the bits of serial, and serial those of the textbook.

use talpf_apps::Matrix;
use talpf_apps::heat::{self, Source};
use talpf_apps::jacobi::{self, Machine, Problem, Progress, Solution, Variant, serial};

/// Rows, columns, block and steps: even, odd, prime, thin, single, and a block that is too large.
const SHAPES: [[usize; 4]; 9] = [
    [64, 64, 16, 10],
    [65, 33, 16, 7],
    [61, 67, 8, 12],
    [1, 1, 1, 5],
    [1, 100, 7, 3],
    [100, 1, 7, 3],
    [3, 200, 1000, 4],
    [7, 7, 2, 1],
    [130, 70, 64, 2],
];

fn problem([rows, cols, block, steps]: [usize; 4]) -> Problem {
    Problem::new(rows, cols, block, steps, heat::default_sources()).unwrap()
}

fn solve(variant: Variant, problem: &Problem, ranks: usize, workers: usize) -> Solution {
    let machine = Machine::new(ranks, workers).unwrap();
    jacobi::run(variant, problem, machine, &Progress::default()).unwrap()
}

fn textbook(problem: &Problem) -> Matrix {
    let mut old = problem.initial_matrix();
    for _ in 0..problem.steps() {
        let mut new = old.clone();
        for r in 1..=problem.rows() {
            for c in 1..=problem.cols() {
                let vertical = old.row(r - 1)[c] + old.row(r + 1)[c];
                let horizontal = old.row(r)[c - 1] + old.row(r)[c + 1];
                new.row_mut(r)[c] = 0.25 * (vertical + horizontal);
            }
        }
        old = new;
    }
    old
}

#[test]
fn serial_is_the_textbook() {
    for shape in SHAPES {
        let problem = problem(shape);
        let solution = serial::solve(&problem, &Progress::default());
        assert_eq!(
            solution.matrix.first_difference(&textbook(&problem)),
            None,
            "{shape:?}"
        );
        assert_eq!(solution.machine, Machine::ONE);
    }
}

#[test]
fn fork_join_is_serial_for_any_number_of_workers() {
    for shape in SHAPES {
        let problem = problem(shape);
        let expected = solve(Variant::Serial, &problem, 1, 1).matrix;
        for workers in [1, 2, 3, 8] {
            let solution = solve(Variant::ForkJoin, &problem, 1, workers);
            let difference = solution.matrix.first_difference(&expected);
            assert_eq!(difference, None, "{shape:?} on {workers} workers");
            assert_eq!(solution.machine.workers(), workers.min(problem.rows()));
        }
    }
}

#[test]
fn progress_counts_every_step_once() {
    let problem = problem([20, 20, 4, 17]);
    for variant in [Variant::Serial, Variant::ForkJoin] {
        let progress = Progress::default();
        jacobi::run(variant, &problem, Machine::new(1, 3).unwrap(), &progress).unwrap();
        assert_eq!(progress.steps(), 17, "{}", variant.name());
    }
}

#[test]
fn heat_settles_between_the_extremes_of_the_border() {
    // So wide a cone that the border is nearly the same all around.
    let source = Source {
        row: 0.5,
        col: 0.5,
        size: 10.0,
        temperature: 100.0,
    };
    let problem = Problem::new(8, 8, 8, 2000, vec![source]).unwrap();
    let matrix = solve(Variant::Serial, &problem, 1, 1).matrix;
    let (coldest, hottest) = (92.9, 95.1);
    assert!(
        matrix
            .cells()
            .iter()
            .all(|cell| (coldest..hottest).contains(cell))
    );
}
