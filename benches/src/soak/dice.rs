//! Random choices that a seed repeats.

/// A sequence of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Dice(seed)
    }

    pub(super) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit as u64) as usize
    }

    /// One time in `times`.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of several.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// One of several, each as often as its weight says.
    pub(super) fn weigh<'a, T>(&mut self, choices: &'a [(u32, T)]) -> &'a T {
        let total: u32 = choices.iter().map(|(weight, _)| weight).sum();
        let mut left = self.below(total as usize) as u32;
        let chosen = choices.iter().find(|(weight, _)| {
            let here = left < *weight;
            left = left.saturating_sub(*weight);
            here
        });
        &chosen.unwrap_or(&choices[0]).1
    }

    /// The two ends of a part of `0..limit`.
    pub(super) fn part(&mut self, limit: usize, longest: usize) -> (usize, usize) {
        let from = self.below(limit);
        let length = 1 + self.below(longest);
        (from, limit.min(from + length))
    }
}

/// What a body does to the numbers it reads and writes, in order.
pub(super) fn mix(seed: u64, value: u64) -> u64 {
    (seed ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}
