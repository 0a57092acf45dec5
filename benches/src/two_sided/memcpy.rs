//! Bandwidth of copies between buffers that stay in place: by one core, and by two cores
//! alternately, as the ranks of a ping-pong copy.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use talpf_runtime::spawn_on_other_core;

use super::sizes::{LARGE, SIZES, Value, bandwidth};

/// Measures the bandwidth of copies by one core, for the sizes of large messages.
pub(super) fn sample(budget: Duration) -> Vec<Value> {
    bandwidths(|size| {
        let mut pair = Pair::new(size);
        let start = Instant::now();
        let copies = count(|| pair.copy(), || start.elapsed() < budget);
        start.elapsed().as_secs_f64() / copies
    })
}

/// Measures the bandwidth of copies by two cores alternately, each with buffers of its own.
pub(super) fn sample_alternating(budget: Duration) -> Vec<Value> {
    bandwidths(|size| {
        let (is_others, ends) = (AtomicBool::new(false), AtomicBool::new(false));
        let wait_until = |others: bool| {
            while is_others.load(Ordering::Acquire) != others {
                spin_loop();
            }
        };
        thread::scope(|scope| {
            let other = || {
                let mut pair = Pair::new(size);
                loop {
                    wait_until(true);
                    if ends.load(Ordering::Relaxed) {
                        break;
                    }
                    pair.copy();
                    is_others.store(false, Ordering::Release);
                }
            };
            if spawn_on_other_core(scope, other).is_err() {
                return f64::NAN;
            }
            let mut pair = Pair::new(size);
            let mut round = || {
                is_others.store(true, Ordering::Release);
                wait_until(false);
                pair.copy();
            };
            round();
            let start = Instant::now();
            let rounds = count(round, || start.elapsed() < budget);
            let seconds = start.elapsed().as_secs_f64() / (2.0 * rounds);
            ends.store(true, Ordering::Relaxed);
            is_others.store(true, Ordering::Release);
            seconds
        })
    })
}

/// Returns the bandwidths for the sizes of large messages, from the time of each copy.
fn bandwidths(seconds: impl Fn(usize) -> f64) -> Vec<Value> {
    let large = SIZES.iter().filter(|(size, _)| *size >= LARGE);
    large.map(|(size, name)| (bandwidth(name), *size as f64 / seconds(*size) * 1e-9)).collect()
}

/// Repeats `step` at least once and while `goes_on`. Returns the number of repetitions.
fn count(mut step: impl FnMut(), goes_on: impl Fn() -> bool) -> f64 {
    let mut steps = 0.0;
    loop {
        step();
        steps += 1.0;
        if !goes_on() {
            return steps;
        }
    }
}

/// Source and destination of copies, both already touched.
struct Pair {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Pair {
    fn new(size: usize) -> Self {
        let mut pair = Pair { from: vec![1; size], to: vec![0; size] };
        pair.copy();
        pair
    }

    fn copy(&mut self) {
        self.to.copy_from_slice(black_box(&self.from));
        black_box(&mut self.to);
    }
}
