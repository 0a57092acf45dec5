//! The memory file of a process: what lies where.
//!
//! ```text
//! sleep word │ life word │ key table │ use words of each peer │ ring of each peer │ memory of segments
//! ```

use super::{
    keys::KeySlot,
    ring::RingMemory,
    words::{LifeWord, SleepWord, UseWord},
};
use crate::rail::registrations::MAX_KEYS;

/// Slots of a ring.
const SLOTS: usize = 512;
/// Words of a ring for frames longer than a slot: 128 KiB.
const WORDS: usize = 16 << 10;

/// Ring from one process to one other.
pub(super) type Ring = RingMemory<SLOTS, WORDS>;

/// Use words of a peer: the first one of those who hold the lock of its ring, and others for long
/// copies.
pub(super) type UseWords = [UseWord; USES];
pub(super) const USES: usize = 4;

/// Boundary of the parts of the file: a huge page.
const BOUNDARY: usize = 2 << 20;
/// Unit in which memory of segments is given out.
pub(super) const PAGE: usize = 4096;

/// Offsets of the parts of a memory file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    keys: usize,
    uses: usize,
    rings: usize,
    /// Start of the memory of segments.
    pub(super) segments: usize,
    /// Length of the file.
    pub(super) length: usize,
}

/// Offsets of the parts of a file that are no bytes of segments.
impl Layout {
    /// Returns the layout of the file of one of so many processes; `None` if no file is that long.
    pub(super) fn new(processes: u32, segment_bytes: usize) -> Option<Self> {
        let processes = processes as usize;
        let keys = size_of::<SleepWord>() + size_of::<LifeWord>();
        let uses = keys + MAX_KEYS * size_of::<KeySlot>();
        let rings = uses.checked_add(processes.checked_mul(size_of::<UseWords>())?)?;
        let end = rings.checked_add(processes.checked_mul(size_of::<Ring>())?)?;
        let segments = end.checked_next_multiple_of(BOUNDARY)?;
        let length = segments.checked_add(segment_bytes)?.checked_next_multiple_of(PAGE)?;
        isize::try_from(length).ok()?;
        Some(Self { keys, uses, rings, segments, length })
    }

    pub(super) fn sleep_word(&self) -> usize {
        0
    }

    pub(super) fn life_word(&self) -> usize {
        size_of::<SleepWord>()
    }

    pub(super) fn key(&self, index: usize) -> usize {
        self.keys + index * size_of::<KeySlot>()
    }

    /// Returns the offset of the words of the uses that process `user` makes of the owner's memory.
    pub(super) fn uses(&self, user: u32) -> usize {
        self.uses + user as usize * size_of::<UseWords>()
    }

    /// Returns the offset of the ring from process `writer` to the owner.
    pub(super) fn ring(&self, writer: u32) -> usize {
        self.rings + writer as usize * size_of::<Ring>()
    }
}
