//! Blocks of the memory that peers may read, of which each announcement has some.

/// Blocks of the memory that peers may read.
pub(super) const BLOCKS: usize = u128::BITS as usize;
/// Bytes of a block. All of them fit the cache of a processor: bytes are copied to those that were used
/// last.
pub(super) const BLOCK_BYTES: usize = 32 << 10;
/// Most blocks that announcements to one peer have, so that others have some while it does not answer.
const MOST_EACH: u32 = BLOCKS as u32 / 2;

/// Blocks that are free, and those that peers have.
pub(super) struct Blocks {
    /// Blocks that no announcement has.
    free: u128,
    /// Blocks that a process which was given up may read at any time, so that nobody uses them again.
    unusable: u128,
    /// Number of the blocks that each process has.
    held: Box<[u32]>,
}

/// Blocks that lie one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: u32,
    count: u32,
}

/// Reason for which an announcement gets no blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoBlocks {
    /// Other announcements have them.
    Taken,
    /// All are unusable.
    Unusable,
}
use NoBlocks::{Taken, Unusable};

impl Span {
    /// Returns the bytes that the blocks have room for.
    pub(super) fn bytes(self) -> usize {
        self.count as usize * BLOCK_BYTES
    }

    /// Returns the blocks, a bit for each.
    fn mask(self) -> u128 {
        (u128::MAX >> (u128::BITS - self.count)) << self.first
    }
}

impl Blocks {
    pub(super) fn new(processes: usize) -> Self {
        Self { free: u128::MAX, unusable: 0, held: vec![0; processes].into_boxed_slice() }
    }

    /// Returns `true` if all blocks are unusable.
    pub(super) fn are_unusable(&self) -> bool {
        self.unusable == u128::MAX
    }

    /// Takes blocks for an announcement of so many bytes to a process; fewer only where as many never lie one
    /// behind the other again.
    pub(super) fn take(&mut self, to: u32, bytes: usize) -> Result<Span, NoBlocks> {
        let held = &mut self.held[to as usize];
        let mut count = bytes.div_ceil(BLOCK_BYTES).clamp(1, MOST_EACH as usize) as u32;
        while find(!self.unusable, count).is_none() {
            count /= 2;
            if count == 0 {
                return Err(Unusable);
            }
        }
        let first = find(self.free, count).filter(|_| *held + count <= MOST_EACH);
        let span = Span { first: first.ok_or(Taken)?, count };
        *held += count;
        self.free &= !span.mask();
        Ok(span)
    }

    /// Takes the blocks of a process back.
    pub(super) fn give_back(&mut self, from: u32, span: Span) {
        self.held[from as usize] -= span.count;
        self.free |= span.mask();
    }

    /// Gives up the blocks of a process that may read them at any time.
    pub(super) fn give_up(&mut self, to: u32, span: Span) {
        self.held[to as usize] -= span.count;
        self.unusable |= span.mask();
    }
}

/// Returns the first bit of so many that are set one behind the other.
fn find(bits: u128, count: u32) -> Option<u32> {
    let starts = (1..count).fold(bits, |starts, nth| starts & bits >> nth);
    (starts != 0).then(|| starts.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(blocks: &mut Blocks, to: u32, count: usize) -> Result<(u32, u32), NoBlocks> {
        let taken = blocks.take(to, count * BLOCK_BYTES);
        taken.map(|span| (span.first, span.count))
    }

    #[test]
    fn blocks_lie_one_behind_the_other_and_belong_to_one_announcement() {
        let mut blocks = Blocks::new(3);
        assert_eq!(
            [1, 61, 3].map(|count| take(&mut blocks, 0, count)),
            [Ok((0, 1)), Ok((1, 61)), Err(Taken)]
        );
        assert_eq!(take(&mut blocks, 1, 64), Ok((62, 64)));
        assert_eq!([3, 2].map(|count| take(&mut blocks, 2, count)), [Err(Taken), Ok((126, 2))]);
        blocks.give_back(0, Span { first: 1, count: 61 });
        assert_eq!([62, 61].map(|count| take(&mut blocks, 2, count)), [Err(Taken), Ok((1, 61))]);
    }

    #[test]
    fn a_process_has_half_of_the_blocks_at_most() {
        let mut blocks = Blocks::new(2);
        assert_eq!(take(&mut blocks, 0, BLOCKS), Ok((0, 64)));
        assert_eq!(take(&mut blocks, 0, 1), Err(Taken));
        assert_eq!(take(&mut blocks, 1, 64), Ok((64, 64)));
        blocks.give_back(0, Span { first: 0, count: 64 });
        assert_eq!(take(&mut blocks, 1, 1), Err(Taken));
        assert_eq!(take(&mut blocks, 0, 1), Ok((0, 1)));
    }

    #[test]
    fn blocks_that_are_unusable_are_not_waited_for() {
        let mut blocks = Blocks::new(4);
        let spans = [0, 1].map(|to| blocks.take(to, 64 * BLOCK_BYTES).unwrap());
        blocks.give_up(0, spans[0]);
        assert_eq!(take(&mut blocks, 2, 64), Err(Taken));
        blocks.give_back(1, spans[1]);
        let short = blocks.take(2, 30 * BLOCK_BYTES).unwrap();
        blocks.give_up(2, short);
        // No 64 lie one behind the other any more.
        assert_eq!(take(&mut blocks, 3, 64), Ok((94, 32)));
        assert_eq!(take(&mut blocks, 1, 2), Ok((126, 2)));
        blocks.give_up(3, Span { first: 94, count: 32 });
        blocks.give_up(1, Span { first: 126, count: 2 });
        assert!(blocks.are_unusable());
        assert_eq!(take(&mut blocks, 1, 1), Err(Unusable));
    }

    #[test]
    fn announcements_take_as_many_blocks_as_they_need() {
        for (bytes, count) in [(0, 1), (1, 1), (BLOCK_BYTES, 1), (BLOCK_BYTES + 1, 2)] {
            let span = Blocks::new(1).take(0, bytes).unwrap();
            assert_eq!((span.count, span.bytes()), (count, count as usize * BLOCK_BYTES));
        }
        let mask = |first, count| Span { first, count }.mask();
        assert_eq!((mask(0, 128), mask(127, 1), mask(1, 2)), (u128::MAX, 1 << 127, 6));
    }
}
