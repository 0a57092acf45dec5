//! Spawners that are so far ahead that they steal, and wait for the workers that are behind: the
//! memory of a program is bounded. In the ablation it makes no difference beyond the noise.

use super::{Policies, Policy};

/// Multiple of the throttle that a spawner must be ahead before it steals and waits, which slows it
/// down.
const FAR: u64 = 16;
/// Longest time that a spawner waits for workers that are behind. Their tasks may wait for
/// something that the spawner does next.
pub(super) const LONGEST_NS: u64 = 1_000_000;

/// Returns the number of outstanding tasks beyond which a spawner is far ahead.
pub(super) fn far(policies: Policies, throttle: usize) -> u64 {
    let far = if policies.has(Policy::CatchUp) { FAR } else { u64::MAX };
    far.saturating_mul(throttle as u64)
}
