//! Ranks with cores so slow that any machine has time for all of them: the time is that of waiting
//! for each other.

use std::thread;

use talpf_apps::Error;
use talpf_apps::gauss_seidel::GaussSeidel;
use talpf_apps::heat;
use talpf_apps::jacobi::Jacobi;
use talpf_apps::run::{Dilation, Machine, Observer, Slowdown, Variant, run};

/// Number of runs of each variant at most: on a busy machine some may be disturbed.
const RUNS: usize = 3;
const MOST_RUNS: usize = 12;

#[test]
fn gauss_seidel_has_at_least_1_7_times_the_throughput_on_lanes() {
    let problem = heat::Problem::new(256, 256, 16, 12, heat::default_sources()).unwrap();
    let problem = problem.in_single_blocks(true);
    let machine = Machine::new(4, 2).unwrap();
    let machine = machine.slowed(Some(Slowdown { rank: None, factor: 40.0 }));
    let seconds = |variant| {
        run::<GaussSeidel>(variant, &problem, machine, &Observer::default())
            .unwrap()
            .unwrap()
            .seconds
    };
    let (mut default, mut lanes) = (f64::INFINITY, f64::INFINITY);
    for runs in 1..=MOST_RUNS {
        default = default.min(seconds(Variant::TalpfDefault));
        lanes = lanes.min(seconds(Variant::TalpfLanes));
        if runs >= RUNS && default > 1.7 * lanes {
            return;
        }
    }
    panic!("{default} s and {lanes} s at best");
}

/// Runs Jacobi on one rank, which has virtual cores, and one worker.
fn dilated(cores: u32, factor: f64, observer: &Observer) -> Result<f64, Error> {
    let problem = heat::Problem::new(256, 256, 32, 4, heat::default_sources()).unwrap();
    let problem = problem.in_single_blocks(true);
    let machine = Machine::new(1, 1).unwrap().dilated(Some(Dilation { cores, factor }));
    let solution = run::<Jacobi>(Variant::TalpfCached, &problem, machine, observer);
    solution.map(|solution| solution.expect("all ranks are here").seconds)
}

#[test]
fn four_virtual_cores_on_one_worker_are_at_least_2_5_times_as_fast_as_one() {
    let seconds = |cores| dilated(cores, 60.0, &Observer::default()).unwrap();
    let (mut one, mut four) = (f64::INFINITY, f64::INFINITY);
    for runs in 1..=MOST_RUNS {
        one = one.min(seconds(1));
        four = four.min(seconds(4));
        if runs >= RUNS && one > 2.5 * four {
            return;
        }
    }
    panic!("{one} s and {four} s at best");
}

#[test]
fn run_whose_tasks_wait_for_virtual_cores_is_interrupted() {
    // One task holds the only core for longer than any test takes.
    let observer = Observer::default();
    let (interrupt, monitor) = (observer.interrupt.clone(), observer.monitor.clone());
    let run = thread::spawn(move || dilated(1, 1e6, &observer));
    let is_spawned = || monitor.metrics().is_some_and(|metrics| metrics.created >= 64);
    while !is_spawned() && !run.is_finished() {
        thread::yield_now();
    }
    assert!(interrupt.cancel("the test has seen enough"));
    assert!(matches!(run.join().unwrap(), Err(Error::Interrupted)));
}
