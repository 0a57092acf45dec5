//! How fast does one core copy as much, from and to buffers that stay in place?

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::sizes::{LARGE, SIZES, Value, bandwidth};

/// The bandwidth of copies of the sizes of large messages.
pub(super) fn sample(budget: Duration) -> Vec<Value> {
    let large = SIZES.iter().filter(|(size, _)| *size >= LARGE);
    large.map(|(size, name)| (bandwidth(name), *size as f64 / copy(*size, budget) * 1e-9)).collect()
}

/// Seconds of a copy, for at least the budget.
fn copy(size: usize, budget: Duration) -> f64 {
    let (from, mut to) = (vec![1u8; size], vec![0u8; size]);
    to.copy_from_slice(black_box(&from));
    let start = Instant::now();
    let mut copies = 0;
    loop {
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
        copies += 1;
        let spent = start.elapsed();
        if spent >= budget {
            return spent.as_secs_f64() / f64::from(copies);
        }
    }
}
