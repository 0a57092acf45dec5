//! Serial is the product modulo a prime, every other variant has the bits of serial.

use talpf_apps::matmul::kernel::{self, Factor, MODULUS};
use talpf_apps::matmul::{Matmul, Problem, serial};
use talpf_apps::matmul_g::MatmulG;
use talpf_apps::run::{App, Machine, Observer, Variant, run};

use crate::{check, progress_is_counted};

/// Size, block and iterations.
const SHAPES: [[usize; 3]; 6] =
    [[48, 16, 3], [101, 6, 2], [67, 16, 3], [1, 1, 4], [20, 1, 2], [33, 100, 3]];

fn problem([size, block, iterations]: [usize; 3]) -> Problem {
    Problem::new(size, block, iterations).unwrap()
}

#[test]
fn serial_is_the_product_modulo_a_prime() {
    let modulus = MODULUS as i64;
    let problem = problem([37, 8, 3]);
    let whole = |factor| kernel::initial(factor, 0..37, 0..37);
    let (mut a, b) = (whole(Factor::A), whole(Factor::B));
    for _ in 0..3 {
        let before = a.clone();
        for row in 0..37 {
            for col in 0..37 {
                let product = |k: usize| before.row(row)[k] as i64 * b.row(k)[col] as i64;
                let sum: i64 = (0..37).map(product).sum();
                a.row_mut(row)[col] = sum.rem_euclid(modulus) as f64;
            }
        }
    }
    let result = serial::solve(&problem, &Observer::default()).result;
    for (found, expected) in result.cells().iter().zip(a.cells()) {
        assert_eq!((*found as i64).rem_euclid(modulus), *expected as i64);
        assert!(found.abs() <= MODULUS / 2.0 && found.fract() == 0.0);
    }
}

#[test]
fn fork_join_is_serial_for_any_number_of_workers() {
    for shape in SHAPES {
        check::<Matmul>(Variant::ForkJoin, &problem(shape), &[1], &[1, 2, 3, 8]);
    }
}

#[test]
fn tasks_on_a_ring_are_serial_on_any_number_of_ranks_and_workers() {
    for &variant in Matmul::VARIANTS {
        check::<Matmul>(variant, &problem([61, 6, 2]), &[1, 2, 4, 7, 16], &[1, 3]);
    }
}

#[test]
fn tasks_on_a_ring_are_serial_for_any_shape() {
    for &variant in Matmul::VARIANTS {
        for shape in SHAPES {
            check::<Matmul>(variant, &problem(shape), &[1, 3, 16], &[2]);
        }
    }
}

#[test]
fn tasks_on_a_square_are_serial_for_any_shape() {
    for &variant in MatmulG::VARIANTS {
        for shape in SHAPES {
            check::<MatmulG>(variant, &problem(shape), &[1, 4, 9, 16, 25], &[2]);
        }
    }
}

#[test]
fn tasks_on_a_square_are_serial_on_any_number_of_workers() {
    for &variant in MatmulG::VARIANTS {
        check::<MatmulG>(variant, &problem([61, 6, 2]), &[4, 9], &[1, 8]);
    }
}

#[test]
fn ranks_of_a_square_are_a_square() {
    for (ranks, fits) in [(1, true), (2, false), (3, false), (4, true), (15, false), (16, true)] {
        assert_eq!(MatmulG::check_ranks(&problem([8, 2, 1]), ranks).is_ok(), fits);
    }
    assert!(MatmulG::check_ranks(&problem([8, 2, 1]), 81).is_err(), "more than a row each");
}

#[test]
fn efficiencies_are_shares() {
    let problem = problem([96, 16, 5]);
    let machine = Machine::new(4, 2).unwrap();
    let observer = Observer::default();
    let run = run::<MatmulG>(Variant::TalpfGet, &problem, machine, &observer);
    let measures = MatmulG::measures(&problem, &run.unwrap().unwrap());
    assert_eq!(measures.len(), 2);
    assert!(measures.iter().all(|measure| measure.value > 0.0 && measure.value < 1.5));
}

#[test]
fn progress_counts_every_step_once() {
    progress_is_counted::<Matmul>(&problem([20, 4, 17]));
    progress_is_counted::<MatmulG>(&problem([20, 4, 17]));
}
