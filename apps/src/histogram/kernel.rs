//! Random numbers and their bins.

use std::ops::Range;

use crate::random::mix;

/// Returns the bin of number `index` of a step, of `bins`. The number is the product of two random
/// ones, which is more often small than large.
#[inline]
pub fn bin(step: usize, index: usize, bins: usize) -> usize {
    let random = mix((step as u64) << 40 ^ index as u64);
    let (one, other) = (random >> 32, random & u64::from(u32::MAX));
    let product = (one * other) >> 32;
    ((product * bins as u64) >> 32) as usize
}

/// Counts numbers of a step by their bins.
pub fn count(step: usize, numbers: Range<usize>, counts: &mut [u64]) {
    let bins = counts.len();
    numbers.for_each(|index| counts[bin(step, index, bins)] += 1);
}

/// Writes the bin of each of the numbers of a step.
pub fn find(step: usize, numbers: Range<usize>, bins: usize, found: &mut [u64]) {
    for (index, found) in numbers.zip(found) {
        *found = bin(step, index, bins) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_more_frequent_and_every_bin_has_some() {
        let mut counts = vec![0; 8];
        count(3, 0..100_000, &mut counts);
        assert_eq!(counts.iter().sum::<u64>(), 100_000);
        assert!(counts.is_sorted_by(|more, fewer| more > fewer) && counts[7] > 0, "{counts:?}");
    }

    #[test]
    fn found_bins_are_those_that_are_counted() {
        let (mut counts, mut found) = (vec![0; 5], vec![0; 100]);
        count(1, 7..107, &mut counts);
        find(1, 7..107, 5, &mut found);
        for (bin, count) in counts.iter().enumerate() {
            assert_eq!(found.iter().filter(|found| **found == bin as u64).count() as u64, *count);
        }
    }
}
