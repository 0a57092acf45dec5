//! What a cache line costs from core to core: the floor under everything that two workers share.
//!
//! Two virtual cores may be threads of one core or far apart, and a hypervisor changes that while
//! benchmarks run; figures of two runs compare only if this one agrees.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use talpf_runtime::{cores, spawn_apart};

const TURNS: u64 = 20_000;

/// On a line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Ball(AtomicU64);

impl Ball {
    fn wait_for(&self, turn: u64) {
        while self.0.load(Ordering::Acquire) != turn {
            spin_loop();
        }
    }
}

/// The name of the figure.
pub(crate) const NAME: &str = "machine.line_one_way_ns";

/// How long a word takes from a core to another one; not a number if there is no other one,
/// or no thread for it.
///
/// **Units**: nanoseconds.
pub(crate) fn sample() -> f64 {
    if cores() > 1 { one_way_ns() } else { f64::NAN }
}

fn one_way_ns() -> f64 {
    let ball = Ball::default();
    std::thread::scope(|scope| {
        let answer = || {
            for turn in 0..TURNS {
                ball.wait_for(2 * turn + 1);
                ball.0.store(2 * turn + 2, Ordering::Release);
            }
        };
        if spawn_apart(scope, answer).is_err() {
            return f64::NAN;
        }
        let start = Instant::now();
        for turn in 0..TURNS {
            ball.0.store(2 * turn + 1, Ordering::Release);
            ball.wait_for(2 * turn + 2);
        }
        start.elapsed().as_nanos() as f64 / (2 * TURNS) as f64
    })
}
