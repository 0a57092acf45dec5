//! Serial gives the forces of the textbook, every other variant the bits of serial.

use talpf_apps::nbody::kernel::{SOFTENING, TIME_STEP};
use talpf_apps::nbody::{Nbody, Particle, Particles, Problem, serial};
use talpf_apps::run::{App, Machine, Observer, Variant, run};

use crate::{check, progress_is_counted};

/// Particles, block and steps.
const SHAPES: [[usize; 3]; 6] =
    [[96, 8, 3], [101, 6, 3], [130, 7, 2], [1, 1, 4], [40, 1, 2], [33, 100, 2]];

const WITH_RANKS: [Variant; 8] = [
    Variant::Lpf,
    Variant::TalpfDefault,
    Variant::TalpfCached,
    Variant::TalpfCachedBarrier,
    Variant::TalpfCachedAck,
    Variant::TalpfGet,
    Variant::Tampi,
    Variant::TampiBlocking,
];

fn problem([particles, block, steps]: [usize; 3], priorities: bool) -> Problem {
    Problem::new(Particles::generate(particles, block, 7), steps, priorities, 7).unwrap()
}

#[test]
fn serial_is_the_textbook() {
    let problem = problem([50, 16, 1], true);
    let before: Vec<Particle> = problem.particles().iter().collect();
    let after = serial::solve(&problem, &Observer::default()).result;
    for (one, moved) in before.iter().zip(after.iter()) {
        for axis in 0..3 {
            let pull = |other: &Particle| {
                let apart: Vec<f64> = (0..3).map(|k| other.place[k] - one.place[k]).collect();
                let square = apart.iter().map(|x| x * x).sum::<f64>() + SOFTENING;
                other.mass * apart[axis] / square.powf(1.5)
            };
            let velocity = one.velocity[axis] + before.iter().map(pull).sum::<f64>() * TIME_STEP;
            assert!((moved.velocity[axis] - velocity).abs() < 1e-12);
            let place = one.place[axis] + moved.velocity[axis] * TIME_STEP;
            assert!((moved.place[axis] - place).abs() < 1e-12);
        }
    }
}

#[test]
fn fork_join_is_serial_for_any_number_of_workers() {
    for shape in SHAPES {
        check::<Nbody>(Variant::ForkJoin, &problem(shape, true), &[1], &[1, 2, 3, 8]);
    }
}

#[test]
fn tasks_are_serial_on_any_number_of_ranks_and_workers() {
    for variant in WITH_RANKS {
        for priorities in [false, true] {
            let problem = problem([61, 6, 3], priorities);
            check::<Nbody>(variant, &problem, &[1, 2, 4, 7, 16], &[1, 3]);
        }
    }
}

#[test]
fn tasks_are_serial_for_any_shape() {
    for variant in WITH_RANKS {
        for shape in SHAPES {
            check::<Nbody>(variant, &problem(shape, true), &[1, 3, 16], &[2]);
        }
    }
}

#[test]
fn progress_counts_every_step_once() {
    progress_is_counted::<Nbody>(&problem([20, 4, 17], true));
}

#[test]
fn blocks_change_the_last_bits_at_most() {
    let end = |block| serial::solve(&problem([100, block, 5], true), &Observer::default()).result;
    let (small, large) = (end(7), end(64));
    for (a, b) in small.iter().zip(large.iter()) {
        assert!((0..3).all(|axis| (a.place[axis] - b.place[axis]).abs() < 1e-12));
    }
}

#[test]
fn energy_and_momentum_stay() {
    let problem = problem([200, 32, 50], true);
    let solution = run::<Nbody>(
        Variant::TalpfCached,
        &problem,
        Machine::new(3, 2).unwrap(),
        &Observer::default(),
    );
    let measures = Nbody::measures(&problem, &solution.unwrap().unwrap());
    let value = |name| measures.iter().find(|measure| measure.name == name).unwrap().value;
    assert!(value("energy") < 0.0, "bound");
    assert!(value("drift").abs() < 1e-2, "{}", value("drift"));
    assert!(value("momentum") < 1e-12, "{}", value("momentum"));
}
