//! Random choices that a seed reproduces.

/// Sequence of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Rng(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a random number below `limit`, which is not 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Returns `true` once in `times` calls on average.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns one of several values.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Returns one of several values, with probabilities in proportion to their weights.
    pub(super) fn pick_weighted<'a, T>(&mut self, choices: &'a [(u32, T)]) -> &'a T {
        let total: u32 = choices.iter().map(|(weight, _)| weight).sum();
        let mut left = self.below(total as usize) as u32;
        let chosen = choices.iter().find(|(weight, _)| {
            let here = left < *weight;
            left = left.saturating_sub(*weight);
            here
        });
        &chosen.unwrap_or(&choices[0]).1
    }

    /// Returns the start and the end of a range within `0..limit`.
    pub(super) fn part(&mut self, limit: usize, longest: usize) -> (usize, usize) {
        let from = self.below(limit);
        let length = 1 + self.below(longest);
        (from, limit.min(from + length))
    }
}

/// Mixes a number into a seed, as every body does with the numbers it reads and writes, in order.
pub(super) fn mix(seed: u64, value: u64) -> u64 {
    (seed ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}
