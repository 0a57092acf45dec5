//! Partition of a range of indices.

use std::ops::Range;

/// Returns part `index` of `parts` parts of `0..len`, whose lengths differ by one at most.
pub(crate) fn share(len: usize, index: usize, parts: usize) -> Range<usize> {
    let first = |part: usize| len * part / parts;
    first(index)..first(index + 1)
}

/// Cuts `range` into pieces of `size`; the last may be shorter.
pub(crate) fn pieces(
    range: Range<usize>,
    size: usize,
) -> impl DoubleEndedIterator<Item = Range<usize>> + ExactSizeIterator + Clone {
    let end = range.end;
    range.step_by(size).map(move |start| start..(start + size).min(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_whole_and_nearly_equal() {
        for (len, parts) in [(1, 1), (7, 7), (100, 32), (4096, 3), (3, 5)] {
            let all: Vec<_> = (0..parts).map(|index| share(len, index, parts)).collect();
            assert_eq!((all[0].start, all[parts - 1].end), (0, len));
            assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
            let least = len / parts;
            assert!(all.iter().all(|share| (least..=least + 1).contains(&share.len())));
        }
    }

    #[test]
    fn pieces_are_the_whole_in_order() {
        let all: Vec<_> = pieces(1..11, 4).collect();
        assert_eq!(all, [1..5, 5..9, 9..11]);
        assert_eq!(pieces(3..3, 4).len(), 0);
        assert_eq!(pieces(0..3, 100).next_back(), Some(0..3));
    }
}
