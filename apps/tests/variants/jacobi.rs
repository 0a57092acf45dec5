//! Serial gives the bits of the textbook formula, and every other variant those of serial.

use talpf_apps::Matrix;
use talpf_apps::heat::{self, Source};
use talpf_apps::jacobi::{Jacobi, Problem, serial};
use talpf_apps::run::{Machine, Observer, Variant, run};
use talpf_traces::paraver;
use talpf_traces::{Recorder, TraceInfo};

use crate::{check, progress_is_counted};

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

const WITH_RANKS: [Variant; 10] = [
    Variant::Lpf,
    Variant::TalpfDefault,
    Variant::TalpfCached,
    Variant::TalpfCachedBarrier,
    Variant::TalpfCachedAck,
    Variant::TalpfRawCached,
    Variant::TalpfMsg,
    Variant::TalpfGet,
    Variant::Tampi,
    Variant::TampiBlocking,
];

fn problem([rows, cols, block, steps]: [usize; 4]) -> Problem {
    Problem::new(rows, cols, block, steps, heat::default_sources()).unwrap()
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
        assert_eq!(solution.result.first_difference(&textbook(&problem)), None, "{shape:?}");
        assert_eq!(solution.machine, Machine::ONE);
    }
}

#[test]
fn fork_join_is_serial_for_any_number_of_workers() {
    for shape in SHAPES {
        check::<Jacobi>(Variant::ForkJoin, &problem(shape), &[1], &[1, 2, 3, 8]);
    }
}

#[test]
fn tasks_are_serial_on_any_number_of_ranks_and_workers() {
    for variant in WITH_RANKS {
        let problem = problem([61, 67, 8, 12]);
        check::<Jacobi>(variant, &problem, &[1, 2, 4, 7, 32], &[1, 3]);
    }
}

#[test]
fn tasks_are_serial_for_any_shape() {
    for variant in WITH_RANKS {
        for shape in SHAPES {
            check::<Jacobi>(variant, &problem(shape), &[1, 3, shape[0].min(40)], &[2]);
        }
    }
}

#[test]
fn tasks_are_serial_with_several_strips_side_by_side() {
    for variant in WITH_RANKS {
        // Strips of 4102 and 5000 columns: more than two, and one of a column less than a block.
        check::<Jacobi>(variant, &problem([9, 9001, 7, 6]), &[1, 3, 9], &[2]);
        check::<Jacobi>(variant, &problem([9, 9999, 5000, 6]), &[2], &[1, 8]);
    }
}

#[test]
fn tasks_are_serial_on_every_grid_of_up_to_nine_ranks() {
    for variant in WITH_RANKS.into_iter().filter(|variant| *variant != Variant::TalpfRawCached) {
        for rows in 1..=9 {
            for cols in 1..=9 / rows {
                let problem = problem([19, 17, 4, 7]).on_grid(Some([rows, cols]));
                check::<Jacobi>(variant, &problem, &[(rows * cols) as usize], &[2]);
            }
        }
        let wide = problem([9, 9001, 7, 6]).on_grid(Some([2, 2]));
        check::<Jacobi>(variant, &wide, &[4], &[2]);
    }
}

#[test]
fn a_grid_that_does_not_fit_is_an_error() {
    let error = |variant, grid, ranks| {
        let problem = problem([4, 3, 2, 1]).on_grid(Some(grid));
        let machine = Machine::new(ranks, 1).unwrap();
        run::<Jacobi>(variant, &problem, machine, &Observer::default()).unwrap_err().to_string()
    };
    let cached = Variant::TalpfCached;
    assert_eq!(error(cached, [2, 3], 4), "ranks is 4, but a grid of 2x3 has 6 ranks");
    assert_eq!(error(cached, [2, 3], 1), "ranks is 1, but a grid of 2x3 has 6 ranks");
    assert_eq!(
        error(cached, [1, 4], 4),
        "3 columns are too few for 4 ranks, of which each needs at least 1"
    );
    assert_eq!(
        error(Variant::Tampi, [5, 1], 5),
        "4 rows are too few for 5 ranks, of which each needs at least 1"
    );
    assert_eq!(
        error(Variant::TalpfRawCached, [2, 2], 4),
        "talpf-raw-cached exchanges rows only, expected a grid of one column, not of 2"
    );
}

#[test]
fn trace_has_a_task_for_every_strip_and_a_message_for_every_halo() {
    let problem = problem([40, 30, 8, 5]);
    for variant in WITH_RANKS {
        let recorder = Recorder::default();
        let observer = Observer { recorder: Some(recorder.clone()), ..Observer::default() };
        run::<Jacobi>(variant, &problem, Machine::new(3, 2).unwrap(), &observer).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let info = TraceInfo { ranks: 3, workers: 2, ..TraceInfo::default() };
        let files = recorder.write_paraver(folder.path(), "t", &info).unwrap();
        let report = paraver::check(&files.prv).unwrap();
        assert!(report.is_clean(), "{}: {report}", variant.name());
        // Two neighbours pass two halos a step; a get also notifies the owner of its end.
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
    progress_is_counted::<Jacobi>(&problem([20, 20, 4, 17]));
}

#[test]
fn heat_settles_between_the_extremes_of_the_border() {
    // A cone so wide that the border is nearly the same all around.
    let source = Source { row: 0.5, col: 0.5, size: 10.0, temperature: 100.0 };
    let problem = Problem::new(8, 8, 8, 2000, vec![source]).unwrap();
    let matrix = serial::solve(&problem, &Observer::default()).result;
    let (coldest, hottest) = (92.9, 95.1);
    assert!(matrix.cells().iter().all(|cell| (coldest..hottest).contains(cell)));
}
