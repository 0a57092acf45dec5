//! Peak rate of multiplications and additions of a core.

use std::hint::black_box;

use pulp::{Arch, Simd, WithSimd};
use talpf_runtime::Clock;

/// Number of sums that keeps two units with a latency of five cycles busy.
const SUMS: usize = 12;
const ROUNDS: usize = 200_000;
const REPETITIONS: usize = 9;

/// Measures the peak rate of one core with all numbers in registers. **Cost**: about ten
/// milliseconds.
///
/// **Units**: multiplications and additions of `f64` per second.
pub(super) fn flops_per_s() -> f64 {
    let times = (0..REPETITIONS).map(|_| {
        let clock = Clock::start();
        let flops = Arch::new().dispatch(Sums);
        flops / clock.now().as_secs_f64()
    });
    times.fold(0.0, f64::max)
}

struct Sums;

impl WithSimd for Sums {
    /// Number of operations.
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let factor = simd.splat_f64s(black_box(1.0));
        let mut sums = [simd.splat_f64s(0.0); SUMS];
        for _ in 0..ROUNDS {
            for sum in &mut sums {
                *sum = simd.mul_add_e_f64s(*sum, factor, factor);
            }
        }
        black_box(sums.map(|sum| simd.reduce_sum_f64s(sum)));
        2.0 * (SUMS * ROUNDS * S::F64_LANES) as f64
    }
}
