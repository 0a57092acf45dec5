//! The arithmetic: the pull of one block of particles on another, and the step that follows from
//! it.
//!
//! A block of `n` particles is a slice of `4 n` numbers: all `x`, all `y`, all `z`, all masses. The
//! places of a block that is not full have no mass and pull nothing.
//!
//! Sums of forces are fixed-point numbers with 64 bits behind the point, in three *limbs*: an `f64`
//! counts the ones, another one the units of 2^-32 and a third one those of 2^-64. The pull of a
//! block is summed as `f64` in the order of its particles and cut into limbs, which vectors of
//! numbers are without a branch. Limbs are whole numbers, and their sums are exact: limits of
//! masses ([`MASS`]) and of the number of particles keep each within 2^53. So the order of the
//! blocks does not matter.

use std::array;
use std::ops::RangeInclusive;

use pulp::{Arch, Simd, WithSimd};

/// Least square of a distance: keeps close particles from tearing the sum
/// apart, and the pull of a particle on itself zero.
pub const SOFTENING: f64 = 1e-4;
/// Time that passes in a step.
pub const TIME_STEP: f64 = 1e-3;
/// Range of the mass of a particle.
pub const MASS: RangeInclusive<f64> = 1e-12..=1e6;

/// Numbers of a sum of forces.
pub const LIMBS: usize = 3;
/// Units of a limb in one of the limb before: 2^32.
const LIMB: f64 = 4_294_967_296.0;

/// Adds the pull of `sources` on `targets` (`4 n` numbers each) to `sums` (`9 n`: the first limbs of
/// all `x`, all `y`, all `z`, then the second and the third ones).
///
/// **Panics** when the lengths do not match.
pub fn pull(targets: &[f64], sources: &[f64], sums: &mut [f64]) {
    let n = targets.len() / 4;
    assert_eq!((4 * n, 3 * LIMBS * n), (targets.len(), sums.len()), "4 n and 9 n numbers");
    assert_eq!(sources.len() % 4, 0, "4 numbers a particle");
    Arch::new().dispatch(Pull { targets, sources, sums });
}

/// Moves `bodies` (`4 n`) and changes their `velocities` (`3 n`) by what `sums` (`9 n`) say, and
/// sets the sums to zero.
///
/// **Panics** when the lengths do not match.
pub fn advance(bodies: &mut [f64], velocities: &mut [f64], sums: &mut [f64]) {
    let places = &mut bodies[..velocities.len()];
    let [ones, seconds, thirds] = limbs(sums);
    let limbs = ones.iter().zip(&*seconds).zip(&*thirds);
    for ((place, velocity), ((one, second), third)) in places.iter_mut().zip(velocities).zip(limbs)
    {
        *velocity += ((third / LIMB + second) / LIMB + one) * TIME_STEP;
        *place += *velocity * TIME_STEP;
    }
    sums.fill(0.0);
}

/// The potential energy of `targets` in the field of `sources`.
pub fn potential(targets: &[f64], sources: &[f64]) -> f64 {
    let [x, y, z, masses] = parts(targets);
    let [xs, ys, zs, others] = parts(sources);
    let mut sum = 0.0;
    for i in 0..masses.len() {
        let mut of_one = 0.0;
        for j in 0..others.len() {
            let (dx, dy, dz) = (xs[j] - x[i], ys[j] - y[i], zs[j] - z[i]);
            of_one -= others[j] / (dx * dx + dy * dy + dz * dz + SOFTENING).sqrt();
        }
        sum += masses[i] * of_one;
    }
    sum
}

/// The four quarters of a block.
pub fn parts(block: &[f64]) -> [&[f64]; 4] {
    let n = block.len() / 4;
    array::from_fn(|part| &block[part * n..][..n])
}

struct Pull<'a> {
    targets: &'a [f64],
    sources: &'a [f64],
    sums: &'a mut [f64],
}

impl WithSimd for Pull<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        // Two vectors (two of SSE2 without AVX): their pulls stay in six registers.
        match S::F64_LANES {
            8 => self.by::<16>(),
            4 => self.by::<8>(),
            _ => self.by::<4>(),
        }
    }
}

impl Pull<'_> {
    /// Computes `W` targets at once.
    #[inline(always)]
    fn by<const W: usize>(self) {
        let n = self.targets.len() / 4;
        let whole = n - n % W;
        for first in (0..whole).step_by(W) {
            some::<W>(self.targets, self.sources, self.sums, first);
        }
        for first in whole..n {
            some::<1>(self.targets, self.sources, self.sums, first);
        }
    }
}

/// The pull on `W` targets, each of which takes the sources in their order: how many are computed
/// at once changes no bit.
#[inline(always)]
fn some<const W: usize>(targets: &[f64], sources: &[f64], sums: &mut [f64], first: usize) {
    let [x, y, z, _] = parts(targets).map(|part| {
        let mut here = [0.0; W];
        here.copy_from_slice(&part[first..first + W]);
        here
    });
    let [xs, ys, zs, masses] = parts(sources);
    let (ys, zs, masses) = (&ys[..xs.len()], &zs[..xs.len()], &masses[..xs.len()]);
    let mut pull = [[0.0; W]; 3];
    for j in 0..xs.len() {
        for i in 0..W {
            let (dx, dy, dz) = (xs[j] - x[i], ys[j] - y[i], zs[j] - z[i]);
            let square = dz.mul_add(dz, dy.mul_add(dy, dx.mul_add(dx, SOFTENING)));
            let inverse = inverse_root(square);
            let weight = masses[j] * inverse * (inverse * inverse);
            pull[0][i] = dx.mul_add(weight, pull[0][i]);
            pull[1][i] = dy.mul_add(weight, pull[1][i]);
            pull[2][i] = dz.mul_add(weight, pull[2][i]);
        }
    }
    let n = targets.len() / 4;
    let mut sums = limbs(sums);
    for (axis, mut left) in pull.into_iter().enumerate() {
        for sums in &mut sums {
            for (sum, left) in sums[axis * n + first..][..W].iter_mut().zip(&mut left) {
                *sum += left.trunc();
                *left = (*left - left.trunc()) * LIMB;
            }
        }
    }
}

/// Inverse of the square root of `square`, to a unit or two of the last bit.
///
/// Half the exponent of a number, negated, is an estimate within 3.5 %, and each of Newton's steps
/// squares the error. Square roots and divisions of vectors take more than twice as long as these
/// multiplications, and estimates of the processor have other bits on others.
#[inline(always)]
fn inverse_root(square: f64) -> f64 {
    const ONE_AND_A_HALF_EXPONENTS: u64 = 0x5fe6_eb50_c7b5_37a9;
    let half = 0.5 * square;
    let mut inverse = f64::from_bits(ONE_AND_A_HALF_EXPONENTS - (square.to_bits() >> 1));
    for _ in 0..4 {
        inverse *= (half * inverse).mul_add(-inverse, 1.5);
    }
    inverse
}

/// The limbs of sums, each of all axes.
fn limbs(sums: &mut [f64]) -> [&mut [f64]; LIMBS] {
    let of_one = sums.len() / LIMBS;
    let (first, others) = sums.split_at_mut(of_one);
    let (second, third) = others.split_at_mut(of_one);
    [first, second, third]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the sums of targets that do not fill the last vector.
    fn sums(with: impl FnOnce(Pull<'_>)) -> Vec<f64> {
        let cells = |count: usize| (0..4 * count).map(|cell| (cell as f64).sin().abs() + 0.1);
        let (targets, sources) = (cells(37).collect::<Vec<_>>(), cells(5).collect::<Vec<_>>());
        let mut sums = vec![0.0; 3 * LIMBS * 37];
        with(Pull { targets: &targets, sources: &sources, sums: &mut sums });
        sums
    }

    #[test]
    fn inverse_roots_are_right_to_the_last_bits() {
        for exponent in -40..300 {
            for part in 0..100 {
                let square = 10_f64.powi(exponent / 3) * (1.0 + 0.07 * f64::from(part));
                let error = inverse_root(square) * square.sqrt() - 1.0;
                assert!(error.abs() <= 4.0 * f64::EPSILON, "{error:e} at {square:e}");
            }
        }
    }

    #[test]
    fn all_vectors_give_the_same_bits() {
        let expected = sums(|pull| pull.with_simd(pulp::Scalar::new()));
        assert_eq!(sums(|pull| Arch::new().dispatch(pull)), expected);
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            assert_eq!(sums(|pull| Simd::vectorize(simd, pull)), expected);
        }
    }
}
