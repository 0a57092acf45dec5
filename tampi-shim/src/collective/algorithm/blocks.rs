//! Blocks of elements, one for each rank, one after another.

use smallvec::SmallVec;

use crate::collective::schedule::{BufferRole, Span};

/// Bounds of the blocks of all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// The first element of each block, and the end of the last.
    bounds: SmallVec<[usize; 17]>,
}

impl Blocks {
    /// Returns blocks of the given lengths, or `None` if the sum of the lengths overflows.
    pub(crate) fn of_counts(counts: impl IntoIterator<Item = usize>) -> Option<Self> {
        let mut bounds = SmallVec::from_slice(&[0]);
        let mut end = 0usize;
        for count in counts {
            end = end.checked_add(count)?;
            bounds.push(end);
        }
        Some(Blocks { bounds })
    }

    /// Divides `len` elements into `size` blocks whose lengths differ by at most one.
    pub(crate) fn evenly(len: usize, size: usize) -> Self {
        let (each, longer) = (len / size, len % size);
        let bounds = (0..=size).map(|block| block * each + block.min(longer)).collect();
        Blocks { bounds }
    }

    pub(crate) fn size(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Returns the number of elements of all blocks.
    pub(crate) fn total(&self) -> usize {
        self.bounds[self.size()]
    }

    pub(crate) fn len(&self, block: usize) -> usize {
        self.bounds[block + 1] - self.bounds[block]
    }

    /// Returns the span of one block in a buffer of all blocks.
    pub(crate) fn span(&self, block: usize, role: BufferRole) -> Span {
        Span { role, start: self.bounds[block], len: self.len(block) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_blocks_cover_everything_and_differ_by_one() {
        for (len, size) in (0..30).flat_map(|len| (1..9).map(move |size| (len, size))) {
            let blocks = Blocks::evenly(len, size);
            assert_eq!((blocks.size(), blocks.total()), (size, len));
            let lengths: Vec<usize> = (0..size).map(|block| blocks.len(block)).collect();
            let (least, most) = (lengths.iter().min(), lengths.iter().max());
            assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{lengths:?}");
        }
    }

    #[test]
    fn counts_that_overflow_are_refused() {
        assert_eq!(Blocks::of_counts([usize::MAX, 1]), None);
        assert_eq!(Blocks::of_counts([2, 0, 3]).map(|blocks| blocks.total()), Some(5));
    }
}
