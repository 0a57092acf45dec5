//! Latency of a cache line from core to core: a lower bound for everything that two workers share.
//!
//! Two virtual cores may be threads of one core or far apart, and a hypervisor changes that while
//! benchmarks run; figures of two runs compare only if this one agrees.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use talpf_runtime::{cores, spawn_on_other_core};

const ROUND_TRIPS: u64 = 20_000;

/// Counter on a cache line of its own, passed between two threads.
#[repr(align(128))]
#[derive(Default)]
struct SharedLine(AtomicU64);

impl SharedLine {
    fn wait_for(&self, value: u64) {
        while self.0.load(Ordering::Acquire) != value {
            spin_loop();
        }
    }
}

/// Name of the figure.
pub(crate) const NAME: &str = "machine.line_one_way_ns";

/// Measures the one-way latency of a cache line between two cores. Returns NaN if the machine has
/// only one core, or refuses a second thread.
///
/// **Units**: nanoseconds.
pub(crate) fn sample() -> f64 {
    if cores() > 1 { one_way_ns() } else { f64::NAN }
}

fn one_way_ns() -> f64 {
    let line = SharedLine::default();
    std::thread::scope(|scope| {
        let answer = || {
            for round_trip in 0..ROUND_TRIPS {
                line.wait_for(2 * round_trip + 1);
                line.0.store(2 * round_trip + 2, Ordering::Release);
            }
        };
        if spawn_on_other_core(scope, answer).is_err() {
            return f64::NAN;
        }
        let start = Instant::now();
        for round_trip in 0..ROUND_TRIPS {
            line.0.store(2 * round_trip + 1, Ordering::Release);
            line.wait_for(2 * round_trip + 2);
        }
        start.elapsed().as_nanos() as f64 / (2 * ROUND_TRIPS) as f64
    })
}
