//! Sequences in chunks, each twice as long as the one before: what exists never moves.

/// Returns the chunk of the `nth` entry and its offset there, where the first chunk has
/// `1 << first_shift` entries.
#[inline]
pub(super) fn place(nth: u32, first_shift: u32) -> (usize, u32) {
    let biased = nth + (1 << first_shift);
    let level = biased.ilog2();
    ((level - first_shift) as usize, biased - (1 << level))
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_chunk_has_twice_as_many_entries_as_the_one_before() {
        let places = [0, 3, 4, 11, 12, 27, 28].map(|nth| place(nth, 2));
        assert_eq!(places, [(0, 0), (0, 3), (1, 0), (1, 7), (2, 0), (2, 15), (3, 0)]);
    }
}
