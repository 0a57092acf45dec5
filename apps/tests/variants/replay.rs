//! Graphs that are replayed give the bits of serial, like those that are spawned.

use talpf_apps::gauss_seidel::GaussSeidel;
use talpf_apps::heat;
use talpf_apps::histogram::{self, Histogram};
use talpf_apps::jacobi::Jacobi;
use talpf_apps::kmeans::{self, Kmeans};
use talpf_apps::matmul::{self, Matmul};
use talpf_apps::matmul_g::MatmulG;
use talpf_apps::nbody::{self, Nbody, Particles};
use talpf_apps::run::{self, App, Machine, Observer, Problem, Slowdown, Variant};
use talpf_traces::paraver;
use talpf_traces::{Recorder, TraceInfo};

use crate::check_each;

const RANKS: [usize; 7] = [1, 2, 3, 4, 7, 16, 32];

/// Rows, columns, block and steps.
const SHAPES: [[usize; 4]; 9] = [
    [64, 64, 16, 10],
    [65, 33, 16, 7],
    [1, 1, 1, 5],
    [1, 100, 7, 3],
    [100, 1, 7, 3],
    [3, 200, 1000, 4],
    // One step and two: graphs that are not repeated, and with phases that never run.
    [7, 7, 2, 1],
    [130, 70, 64, 2],
    // More block columns than lanes.
    [5, 300, 1, 3],
];

fn heat([rows, cols, block, steps]: [usize; 4]) -> heat::Problem {
    heat::Problem::new(rows, cols, block, steps, heat::default_sources()).unwrap()
}

fn gravity([particles, block, steps]: [usize; 3]) -> nbody::Problem {
    nbody::Problem::new(Particles::generate(particles, block, 7), steps, true, 7).unwrap()
}

/// Checks every variant that can replay.
#[track_caller]
fn check<A: App>(problem: &A::Problem, ranks: &[usize], workers: &[usize]) {
    for &variant in A::REPLAYED {
        check_each::<A>(variant, problem, ranks, workers, |machine| machine.replaying(true));
    }
}

#[test]
fn jacobi_is_serial_on_any_number_of_ranks_and_workers() {
    check::<Jacobi>(&heat([61, 67, 8, 12]), &RANKS, &[1, 3]);
}

#[test]
fn jacobi_is_serial_for_any_shape() {
    for shape in SHAPES {
        check::<Jacobi>(&heat(shape), &[1, 3, shape[0].min(40)], &[2]);
    }
    // Several strips side by side.
    check::<Jacobi>(&heat([9, 9001, 7, 6]), &[1, 3, 9], &[1, 2]);
}

#[test]
fn gauss_seidel_is_serial_on_any_number_of_ranks_and_workers() {
    check::<GaussSeidel>(&heat([61, 67, 8, 12]).in_single_blocks(true), &RANKS, &[1, 3]);
}

#[test]
fn gauss_seidel_is_serial_for_any_shape() {
    for shape in SHAPES {
        let problem = heat(shape).in_single_blocks(true);
        check::<GaussSeidel>(&problem, &[1, 3, shape[0].min(16)], &[2]);
    }
    // Several strips side by side.
    check::<GaussSeidel>(&heat([9, 601, 7, 6]), &[1, 3], &[2]);
}

#[test]
fn nbody_is_serial_on_any_number_of_ranks_and_workers() {
    check::<Nbody>(&gravity([61, 6, 3]), &RANKS, &[1, 3]);
}

#[test]
fn nbody_is_serial_for_any_shape() {
    for shape in [[96, 8, 3], [130, 7, 2], [1, 1, 4], [40, 1, 1], [33, 100, 2]] {
        check::<Nbody>(&gravity(shape), &[1, 3, 16], &[2]);
    }
}

#[test]
fn products_are_serial_for_any_number_of_multiplications() {
    for (size, block, iterations) in [(37, 5, 4), (40, 64, 3), (9, 3, 1), (16, 1, 2)] {
        let problem = matmul::Problem::new(size, block, iterations).unwrap();
        check::<Matmul>(&problem, &[1, 2, 3, 5], &[1, 2]);
        check::<MatmulG>(&problem, &[1, 4, 9], &[1, 2]);
    }
}

#[test]
fn clusters_are_serial_for_any_shape() {
    for [points, clusters, block, steps] in [[1_001, 13, 100, 5], [9, 20, 7, 3], [500, 1, 900, 1]] {
        let problem = kmeans::Problem::new(points, clusters, block, steps).unwrap();
        check::<Kmeans>(&problem, &[1, 2, 3, 8], &[1, 2]);
    }
}

#[test]
fn slow_ranks_are_serial() {
    let slowed = |machine: Machine| {
        machine.slowed(Some(Slowdown { rank: Some(1), factor: 3.0 })).replaying(true)
    };
    for variant in [Variant::TalpfCached, Variant::Tampi] {
        check_each::<Jacobi>(variant, &heat([61, 67, 8, 12]), &[3], &[2], slowed);
        check_each::<Nbody>(variant, &gravity([101, 6, 3]), &[3], &[2], slowed);
    }
}

#[track_caller]
fn progress_is_counted<A: App>(problem: &A::Problem) {
    for &variant in A::REPLAYED {
        for ranks in [1, 3] {
            let observer = Observer::default();
            let machine = Machine::new(ranks, 2).unwrap().replaying(true);
            run::run::<A>(variant, problem, machine, &observer).unwrap();
            assert_eq!(observer.progress.steps(), problem.steps(), "{}", variant.name());
        }
    }
}

#[test]
fn progress_counts_every_step_once() {
    progress_is_counted::<Jacobi>(&heat([20, 20, 4, 17]));
    progress_is_counted::<GaussSeidel>(&heat([20, 20, 4, 17]));
    progress_is_counted::<Nbody>(&gravity([20, 4, 17]));
    progress_is_counted::<Kmeans>(&kmeans::Problem::new(20, 4, 3, 17).unwrap());
}

#[test]
fn trace_has_every_run_of_a_task_and_every_message() {
    let problem = heat([40, 30, 8, 5]);
    for &variant in Jacobi::REPLAYED {
        let recorder = Recorder::default();
        let observer = Observer { recorder: Some(recorder.clone()), ..Observer::default() };
        let machine = Machine::new(3, 2).unwrap().replaying(true);
        run::run::<Jacobi>(variant, &problem, machine, &observer).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let info = TraceInfo { ranks: 3, workers: 2, ..TraceInfo::default() };
        let files = recorder.write_paraver(folder.path(), "t", &info).unwrap();
        let report = paraver::check(&files.prv).unwrap();
        assert!(report.is_clean(), "{}: {report}", variant.name());
        // Two neighbours pass two halos a step; a get also notifies the owner of its end.
        let lines = if variant == Variant::TalpfGet { 2 } else { 1 };
        assert_eq!(report.counts().communications, lines * 2 * 2 * 5, "{}", variant.name());
        let labels = std::fs::read_to_string(folder.path().join("t.pcf")).unwrap();
        let label = labels.lines().find_map(|line| line.strip_suffix(" jacobi")).unwrap().trim();
        let records = std::fs::read_to_string(&files.prv).unwrap();
        let begins = records.lines().filter(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            fields[0] == "2" && fields[6..].chunks(2).any(|pair| pair == ["11", label])
        });
        // Ranks of 14, 13 and 13 rows have two strips each.
        assert_eq!(begins.count(), 3 * 2 * 5, "{}", variant.name());
    }
}

#[test]
fn variants_that_cannot_be_replayed_name_those_that_can() {
    let machine = Machine::new(2, 2).unwrap().replaying(true);
    let observer = Observer::default();
    for &variant in Jacobi::VARIANTS.iter().filter(|variant| !Jacobi::REPLAYED.contains(variant)) {
        let refused = run::run::<Jacobi>(variant, &heat([9, 9, 3, 2]), machine, &observer);
        let error = refused.unwrap_err().to_string();
        let (names, expected) =
            ("talpf-cached, ", format!("jacobi cannot replay {}", variant.name()));
        assert!(error.starts_with(&expected) && error.contains(names), "{error}");
    }
    let problem = histogram::Problem::new(100, 10, 20, 2, true).unwrap();
    let refused = run::run::<Histogram>(Variant::TalpfDefault, &problem, machine, &observer);
    let error = refused.unwrap_err().to_string();
    assert_eq!(error, "histogram cannot replay talpf-default");
}
