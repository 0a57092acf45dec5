//! Conflicts: memory of one process that a superstep both reads and writes.

use crate::memory::Address;

/// Bytes from the first to before the second address.
type Range = (Address, Address);

/// Bounds of ranges that are not kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    begin: Address,
    end: Address,
}

impl Default for Bounds {
    /// Returns the bounds of no range.
    fn default() -> Self {
        Bounds { begin: Address(usize::MAX), end: Address(0) }
    }
}

impl Bounds {
    /// Takes in `size` bytes. No bytes at all may make the bounds larger than they need to be.
    #[inline]
    pub(crate) fn add(&mut self, address: Address, size: usize) {
        self.begin = self.begin.min(address);
        self.end = self.end.max(address.at(size));
    }

    /// Returns the bounds of both.
    pub(crate) fn union(self, other: Bounds) -> Bounds {
        Bounds { begin: self.begin.min(other.begin), end: self.end.max(other.end) }
    }

    /// Returns `true` if no range of one can overlap one of the other.
    #[inline]
    pub(crate) fn are_apart(self, other: Bounds) -> bool {
        self.begin >= other.end || other.begin >= self.end
    }
}

/// Returns `true` if a range that is read overlaps one that is written. Ranges of one side may overlap each
/// other.
pub(crate) fn any_overlap(
    reads: impl Iterator<Item = (Address, usize)>,
    writes: impl Iterator<Item = (Address, usize)>,
) -> bool {
    let collect = |ranges: &mut dyn Iterator<Item = (Address, usize)>| {
        let ranges = ranges.filter(|(_, size)| *size > 0);
        let mut ranges: Vec<Range> = ranges.map(|(at, size)| (at, at.at(size))).collect();
        ranges.sort_unstable();
        ranges
    };
    let (mut reads, mut writes) = (reads, writes);
    let (reads, writes) = (collect(&mut reads), collect(&mut writes));
    // Of both lists the ranges that begin first are left behind, with the largest end among them.
    let (mut read, mut write) = (0, 0);
    let (mut read_end, mut write_end) = (Address(0), Address(0));
    loop {
        match (reads.get(read), writes.get(write)) {
            (Some(r), w) if w.is_none_or(|w| r.0 <= w.0) => {
                if r.0 < write_end {
                    return true;
                }
                read_end = read_end.max(r.1);
                read += 1;
            }
            (_, Some(w)) => {
                if w.0 < read_end {
                    return true;
                }
                write_end = write_end.max(w.1);
                write += 1;
            }
            (None, None) => return false,
            (Some(_), None) => unreachable!("the first arm takes a read when no write is left"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranges() -> impl Strategy<Value = Vec<(usize, usize)>> {
        prop::collection::vec((0usize..40, 0usize..6), 0..8)
    }

    proptest! {
        #[test]
        fn overlaps_are_found_as_byte_by_byte(reads in ranges(), writes in ranges()) {
            let is_in = |byte: usize, ranges: &[(usize, usize)]| {
                ranges.iter().any(|(at, size)| (*at..at + size).contains(&byte))
            };
            let expected = (0..64).any(|byte| is_in(byte, &reads) && is_in(byte, &writes));
            let with = |ranges: &[(usize, usize)]| {
                ranges.iter().map(|(at, size)| (Address(*at), *size)).collect::<Vec<_>>()
            };
            let (reads, writes) = (with(&reads), with(&writes));
            let found = any_overlap(reads.iter().copied(), writes.iter().copied());
            prop_assert_eq!(found, expected);
            let mut bounds = [Bounds::default(); 2];
            reads.iter().for_each(|(at, size)| bounds[0].add(*at, *size));
            writes.iter().for_each(|(at, size)| bounds[1].add(*at, *size));
            prop_assert!(!(expected && bounds[0].are_apart(bounds[1])));
        }
    }
}
