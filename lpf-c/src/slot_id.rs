//! Number by which a program names a memory slot.

/// Bits of an index.
const INDEX_BITS: u32 = 31;

/// Largest number of slots of a kind. One less than what the bits hold, so that no number is
/// `LPF_INVALID_MEMSLOT`.
pub(crate) const MOST_SLOTS: usize = (1 << INDEX_BITS) - 1;

/// Kind, index and generation in one number. The slots of a register are used again: the generation distinguishes a
/// slot from one that had its index before. Global slots have the same numbers on all processes, as all register and
/// deregister them in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId(pub(crate) usize);

impl SlotId {
    pub(crate) fn new(is_local: bool, index: usize, generation: u32) -> Self {
        debug_assert!(index < MOST_SLOTS, "{index}");
        SlotId((generation as usize) << (INDEX_BITS + 1) | index << 1 | usize::from(is_local))
    }

    #[inline]
    pub(crate) fn is_local(self) -> bool {
        self.0 & 1 == 1
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 >> 1 & MOST_SLOTS
    }

    #[inline]
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> (INDEX_BITS + 1)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_and_no_number_is_the_invalid_one() {
        for is_local in [false, true] {
            for index in [0, 1, MOST_SLOTS - 1] {
                for generation in [0, 1, u32::MAX] {
                    let slot = SlotId::new(is_local, index, generation);
                    assert_eq!(slot.is_local(), is_local);
                    assert_eq!((slot.index(), slot.generation()), (index, generation));
                    assert_ne!(slot.0, usize::MAX);
                }
            }
        }
    }
}
