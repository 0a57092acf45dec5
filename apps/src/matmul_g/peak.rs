//! How fast a core of this machine can multiply and add.

use std::hint::black_box;
use std::time::Instant;

use pulp::{Arch, Simd, WithSimd};

/// Enough sums to keep two units with a latency of five cycles busy.
const SUMS: usize = 12;
const ROUNDS: usize = 200_000;
const REPETITIONS: usize = 9;

/// **Units**: multiplications and additions of `f64` a second of one core, all in registers.
/// **Cost**: about ten milliseconds.
pub(super) fn flops_per_s() -> f64 {
    let times = (0..REPETITIONS).map(|_| {
        let start = Instant::now();
        let flops = Arch::new().dispatch(Sums);
        flops / start.elapsed().as_secs_f64()
    });
    times.fold(0.0, f64::max)
}

struct Sums;

impl WithSimd for Sums {
    /// What was done.
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
