//! Sums of forces: exact, so that the order in which blocks pull changes no bit.

use proptest::prelude::*;
use talpf_apps::nbody::Particles;
use talpf_apps::nbody::kernel::{LIMBS, MASS, SOFTENING, pull};

/// Block of one particle.
type Body = [f64; 4];

fn sums(targets: &[f64], sources: impl Iterator<Item = Body>) -> Vec<f64> {
    let mut sums = vec![0.0; 3 * LIMBS * targets.len() / 4];
    sources.for_each(|source| pull(targets, &source, &mut sums));
    sums
}

fn bodies() -> impl Strategy<Value = Body> {
    let at = || -1.0..1.0f64;
    let exponent = MASS.start().log10()..MASS.end().log10();
    (at(), at(), at(), exponent).prop_map(|(x, y, z, mass)| [x, y, z, 10f64.powf(mass)])
}

proptest! {
    #[test]
    fn the_order_of_blocks_changes_no_bit(
        sources in prop::collection::vec(bodies(), 1..50),
        targets in prop::collection::vec(-1.0..1.0f64, 20..=20),
    ) {
        let forwards = sums(&targets, sources.iter().copied());
        let backwards = sums(&targets, sources.iter().copied().rev());
        prop_assert_eq!(forwards, backwards);
    }
}

/// Tests the largest number of blocks, each with the strongest pull.
#[test]
fn the_sums_of_the_strongest_pulls_are_exact() {
    let (count, target) = (*Particles::COUNTS.end(), [0.0, 0.0, 0.0, 1.0]);
    let source = [(SOFTENING / 2.0).sqrt(), 0.0, 0.0, *MASS.end()];
    let one = sums(&target, std::iter::once(source));
    let all = sums(&target, std::iter::repeat_n(source, count));
    assert!(one[0] > 1e9, "{}", one[0]);
    for (limb, of_all) in one.iter().zip(&all) {
        assert_eq!(limb * count as f64, *of_all);
        assert!(of_all.abs() <= 2f64.powi(53), "{of_all}");
    }
}
