//! Every variant gives the bits of serial, and serial those of the textbook.

use clap::ValueEnum;
use talpf_apps::Matrix;
use talpf_apps::heat::{self, Source};
use talpf_apps::jacobi::{self, Machine, Observer, Problem, Solution, Variant, serial};
use talpf_traces::paraver;
use talpf_traces::{Recorder, TraceInfo};

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

const TALPF: [Variant; 7] = [
    Variant::TalpfDefault,
    Variant::TalpfCached,
    Variant::TalpfCachedBarrier,
    Variant::TalpfCachedAck,
    Variant::TalpfRawCached,
    Variant::TalpfMsg,
    Variant::TalpfGet,
];

fn problem([rows, cols, block, steps]: [usize; 4]) -> Problem {
    Problem::new(rows, cols, block, steps, heat::default_sources()).unwrap()
}

fn solve(variant: Variant, problem: &Problem, ranks: usize, workers: usize) -> Solution {
    let machine = Machine::new(ranks, workers).unwrap();
    jacobi::run(variant, problem, machine, &Observer::default()).unwrap()
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
        let solution = serial::solve(&problem, &Observer::default());
        assert_eq!(solution.matrix.first_difference(&textbook(&problem)), None, "{shape:?}");
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

/// The result of `variant` on every machine that fits must be `expected`.
fn check(variant: Variant, shape: [usize; 4], ranks: &[usize], workers: &[usize]) {
    let problem = problem(shape);
    let expected = solve(Variant::Serial, &problem, 1, 1).matrix;
    for &ranks in ranks.iter().filter(|&&ranks| ranks <= problem.rows()) {
        for &workers in workers {
            let solution = solve(variant, &problem, ranks, workers);
            let difference = solution.matrix.first_difference(&expected);
            let run = format!("{} of {shape:?} on {ranks} x {workers}", variant.name());
            assert_eq!(difference, None, "{run}");
            assert_eq!(solution.machine, Machine::new(ranks, workers).unwrap());
            assert!(solution.seconds > 0.0, "{run}");
        }
    }
}

#[test]
fn tasks_are_serial_on_any_number_of_ranks_and_workers() {
    for variant in TALPF {
        check(variant, [61, 67, 8, 12], &[1, 2, 3, 4, 7, 8, 16, 32], &[1, 2, 8]);
    }
}

#[test]
fn tasks_are_serial_for_any_shape() {
    for variant in TALPF {
        for shape in SHAPES {
            check(variant, shape, &[1, 2, 3, shape[0].min(40)], &[2]);
        }
    }
}

#[test]
fn tasks_are_serial_with_several_strips_side_by_side() {
    for variant in TALPF {
        // Strips of 4102 and 5000 columns: more than two, and one of a column less than a block.
        check(variant, [9, 9001, 7, 6], &[1, 3, 9], &[2]);
        check(variant, [9, 9999, 5000, 6], &[2], &[1, 8]);
    }
}

#[test]
fn trace_has_a_task_for_every_strip_and_a_message_for_every_halo() {
    let problem = problem([40, 30, 8, 5]);
    for variant in TALPF {
        let recorder = Recorder::default();
        let observer = Observer { recorder: Some(recorder.clone()), ..Observer::default() };
        jacobi::run(variant, &problem, Machine::new(3, 2).unwrap(), &observer).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let info = TraceInfo { ranks: 3, workers: 2, ..TraceInfo::default() };
        let files = recorder.write_paraver(folder.path(), "t", &info).unwrap();
        let report = paraver::check(&files.prv).unwrap();
        assert!(report.is_clean(), "{}: {report}", variant.name());
        // Two neighbours pass two halos a step; a get also tells the owner that it is done.
        let lines = if variant == Variant::TalpfGet { 2 } else { 1 };
        assert_eq!(report.counts().communications, lines * 2 * 2 * 5);
        let prv = std::fs::read_to_string(&files.prv).unwrap();
        let messages = prv.lines().filter_map(|line| line.strip_prefix("3:"));
        for message in messages {
            let fields: Vec<u64> = message.split(':').map(|field| field.parse().unwrap()).collect();
            let (from, to, sent, received) = (fields[2], fields[8], fields[5], fields[11]);
            assert_eq!(from.abs_diff(to), 1, "only neighbours talk: {message}");
            assert!(sent <= received, "received before it was sent: {message}");
        }
    }
}

#[test]
fn progress_counts_every_step_once() {
    let problem = problem([20, 20, 4, 17]);
    for variant in Variant::value_variants() {
        let observer = Observer::default();
        jacobi::run(*variant, &problem, Machine::new(2, 3).unwrap(), &observer).unwrap();
        assert_eq!(observer.progress.steps(), 17, "{}", variant.name());
    }
}

#[test]
fn heat_settles_between_the_extremes_of_the_border() {
    // So wide a cone that the border is nearly the same all around.
    let source = Source { row: 0.5, col: 0.5, size: 10.0, temperature: 100.0 };
    let problem = Problem::new(8, 8, 8, 2000, vec![source]).unwrap();
    let matrix = solve(Variant::Serial, &problem, 1, 1).matrix;
    let (coldest, hottest) = (92.9, 95.1);
    assert!(matrix.cells().iter().all(|cell| (coldest..hottest).contains(cell)));
}
