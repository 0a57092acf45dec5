//! Rings: frames from one process to one other, through memory that both map.
//!
//! A ring has slots of a cache line, each with its own sequence number, and a ring of words for
//! frames that are longer than a slot. One thread at a time writes and one reads, each under a lock
//! of its process.
//!
//! - The writer fills slot `n % SLOTS`, and words, and then stores `n + 1` as its sequence number.
//! - The reader sees that number, copies the frame, and then stores how many slots and words it has
//!   taken, which the writer reads when it runs out of room.
//!
//! Both ends compute by themselves where the words of a frame lie: behind those of the last one, or
//! at the front of the ring if the frame would end past it. So no number of a peer becomes a place
//! in memory; a length is checked before it is used, and a count that is out of step is an error. All
//! words are atomic: a peer that breaks the protocol makes frames of any content, and nothing worse.

use talpf_primitives::{
    AtomicU64, Ordering, prefetch_all, prefetch_all_to_write, prefetch_to_write,
};

use crate::rail::frame::{Encoded, Lengths, Malformed};

/// Words of a slot behind its sequence number.
const SLOT_WORDS: usize = 7;
const WORD: usize = size_of::<u64>();
/// Words of a frame that are fetched ahead: what comes behind them would not stay in the first level.
const FETCHED_WORDS: usize = 1024;

#[repr(C, align(64))]
pub(super) struct Slot {
    sequence: AtomicU64,
    words: [AtomicU64; SLOT_WORDS],
}

/// Slots and words that the reader has taken since the beginning.
#[repr(C, align(64))]
struct Taken {
    slots: AtomicU64,
    words: AtomicU64,
}

/// Memory of a ring, all zero at the beginning. A frame has at most half of its words, so that there
/// is room for any frame in an empty ring, wherever that stands.
#[repr(C)]
pub(super) struct RingMemory<const SLOTS: usize, const WORDS: usize> {
    slots: [Slot; SLOTS],
    taken: Taken,
    words: [AtomicU64; WORDS],
}

impl<const SLOTS: usize, const WORDS: usize> RingMemory<SLOTS, WORDS> {
    /// Returns the slot of the frame with this number.
    fn slot(&self, frame: u64) -> &Slot {
        &self.slots[frame as usize % SLOTS]
    }

    /// Has memory of a frame of `length` words brought to this core, which is about to write it at `next`. A hint: any
    /// position will do.
    pub(super) fn prefetch(&self, next: Position, length: usize) {
        prefetch_to_write(self.slot(next.slots));
        if length > SLOT_WORDS && length <= WORDS / 2 {
            let first = next.place(length, WORDS) as usize % WORDS;
            prefetch_all_to_write(&self.words[first..first + length.min(FETCHED_WORDS)]);
        }
    }
}

/// A position: slots and words since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) slots: u64,
    pub(super) words: u64,
}

impl Position {
    /// Returns the start of `length` words that do not go around the end of a ring of `size`.
    fn place(self, length: usize, size: usize) -> u64 {
        let offset = self.words % size as u64;
        let is_around = offset + length as u64 > size as u64;
        if is_around { self.words - offset + size as u64 } else { self.words }
    }

    fn advance(&mut self, start: u64, length: usize) {
        self.slots += 1;
        self.words = start + length as u64;
    }
}

/// The writing end of a ring.
#[derive(Default)]
pub(super) struct Writer {
    at: Position,
    /// Position of the reader when it was last read.
    taken: Position,
    /// Slots that are kept for frames of a slot.
    reserved: u64,
    /// Slots that the reader had taken when a frame found no room, until
    /// [`has_new_room`](Self::has_new_room) sees that the reader has taken more.
    refused_at: Option<u64>,
}

impl Writer {
    /// Writes a frame. Returns `false` if the ring has no room at present.
    pub(super) fn push<const SLOTS: usize, const WORDS: usize>(
        &mut self,
        ring: &RingMemory<SLOTS, WORDS>,
        frame: &Encoded<'_>,
    ) -> Result<bool, Malformed> {
        let length = frame.head().len() + frame.body.len().div_ceil(WORD);
        debug_assert!(length <= WORDS / 2, "a frame of {length} words");
        let is_long = length > SLOT_WORDS;
        let start = if is_long { self.at.place(length, WORDS) } else { self.at.words };
        let words = if is_long { length } else { 0 };
        if !self.has_room::<SLOTS, WORDS>(start + words as u64, self.reserved) {
            self.refresh(ring)?;
            if !self.has_room::<SLOTS, WORDS>(start + words as u64, self.reserved) {
                self.refused_at = Some(self.taken.slots);
                return Ok(false);
            }
        }
        let slot = ring.slot(self.at.slots);
        if is_long {
            let first = start as usize % WORDS;
            slot.words[0].store(frame.head()[0], Ordering::Relaxed);
            store(&ring.words[first..first + length], frame);
        } else {
            store(&slot.words, frame);
        }
        self.at.advance(start, words);
        slot.sequence.store(self.at.slots, Ordering::Release);
        Ok(true)
    }

    /// Returns the position of the next frame.
    pub(super) fn position(&self) -> Position {
        self.at
    }

    /// Keeps a slot, so that a later [`push_reserved`](Self::push_reserved) has room. Returns `false`
    /// if the ring has none at present.
    pub(super) fn reserve<const SLOTS: usize, const WORDS: usize>(
        &mut self,
        ring: &RingMemory<SLOTS, WORDS>,
    ) -> Result<bool, Malformed> {
        if !self.has_room::<SLOTS, WORDS>(self.at.words, self.reserved) {
            self.refresh(ring)?;
        }
        let has_room = self.has_room::<SLOTS, WORDS>(self.at.words, self.reserved);
        if has_room {
            self.reserved += 1;
        } else {
            self.refused_at = Some(self.taken.slots);
        }
        Ok(has_room)
    }

    /// Returns `true` if a frame found no room, and the reader was not seen to have taken more since.
    pub(super) fn waits_for_room(&self) -> bool {
        self.refused_at.is_some()
    }

    /// Returns `true` if the reader has taken something since a frame found no room, the first time.
    pub(super) fn has_new_room<const SLOTS: usize, const WORDS: usize>(
        &mut self,
        ring: &RingMemory<SLOTS, WORDS>,
    ) -> bool {
        let taken = ring.taken.slots.load(Ordering::Acquire);
        self.refused_at.take_if(|at| *at != taken).is_some()
    }

    /// Gives a slot that was kept back unused.
    pub(super) fn unreserve(&mut self) {
        self.reserved -= 1;
    }

    /// Writes a frame of one slot into a slot that was kept.
    pub(super) fn push_reserved<const SLOTS: usize, const WORDS: usize>(
        &mut self,
        ring: &RingMemory<SLOTS, WORDS>,
        frame: &Encoded<'_>,
    ) -> Result<bool, Malformed> {
        self.unreserve();
        self.push(ring, frame)
    }

    /// Returns `true` if a slot is free beside `reserved` ones, and the words up to `end`.
    fn has_room<const SLOTS: usize, const WORDS: usize>(&self, end: u64, reserved: u64) -> bool {
        self.at.slots + reserved - self.taken.slots < SLOTS as u64
            && end - self.taken.words <= WORDS as u64
    }

    /// Reads what the reader has taken.
    fn refresh<const SLOTS: usize, const WORDS: usize>(
        &mut self,
        ring: &RingMemory<SLOTS, WORDS>,
    ) -> Result<(), Malformed> {
        let slots = ring.taken.slots.load(Ordering::Acquire);
        let words = ring.taken.words.load(Ordering::Acquire);
        let (old, at) = (self.taken, self.at);
        if !(old.slots..=at.slots).contains(&slots) || !(old.words..=at.words).contains(&words) {
            return Err(Malformed("a count of frames that is out of step"));
        }
        self.taken = Position { slots, words };
        Ok(())
    }
}

/// The reading end of a ring.
#[derive(Default)]
pub(super) struct Reader(Position);

impl Reader {
    /// Copies the next frame to the front of `buffer`, and returns its lengths.
    pub(super) fn pop<const SLOTS: usize, const WORDS: usize>(
        &mut self,
        ring: &RingMemory<SLOTS, WORDS>,
        buffer: &mut [u64],
    ) -> Result<Option<Lengths>, Malformed> {
        if !self.has_next(ring)? {
            return Ok(None);
        }
        let slot = ring.slot(self.0.slots);
        let header = slot.words[0].load(Ordering::Relaxed);
        let lengths = Lengths::of(header)?;
        let length = lengths.words();
        let buffer = buffer.get_mut(..length).filter(|_| length <= WORDS / 2);
        let buffer = buffer.ok_or(Malformed("a frame beyond its ring"))?;
        let is_long = length > SLOT_WORDS;
        let start = if is_long { self.0.place(length, WORDS) } else { self.0.words };
        if is_long {
            let first = start as usize % WORDS;
            prefetch_all(&ring.words[first..first + length.min(FETCHED_WORDS)]);
            load(&ring.words[first..first + length], buffer);
        } else {
            load(&slot.words, buffer);
        }
        // The lengths are those that were checked, whatever the peer has stored since.
        buffer[0] = header;
        self.0.advance(start, if is_long { length } else { 0 });
        ring.taken.words.store(self.0.words, Ordering::Release);
        ring.taken.slots.store(self.0.slots, Ordering::Release);
        Ok(Some(lengths))
    }

    /// Returns `true` if a frame is there.
    pub(super) fn has_next<const SLOTS: usize, const WORDS: usize>(
        &self,
        ring: &RingMemory<SLOTS, WORDS>,
    ) -> Result<bool, Malformed> {
        let slot = ring.slot(self.0.slots);
        let sequence = slot.sequence.load(Ordering::Acquire);
        let next = self.0.slots + 1;
        if sequence == next {
            return Ok(true);
        }
        // The slot still has its number of the lap before.
        if sequence == next.saturating_sub(SLOTS as u64) {
            return Ok(false);
        }
        Err(Malformed("a sequence number that is out of step"))
    }
}

/// Stores head and body of a frame.
fn store(words: &[AtomicU64], frame: &Encoded<'_>) {
    let (head, rest) = words.split_at(frame.head().len());
    for (word, value) in head.iter().zip(frame.head()) {
        word.store(*value, Ordering::Relaxed);
    }
    let (whole, tail) = frame.body.as_chunks::<WORD>();
    for (word, bytes) in rest.iter().zip(whole) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if !tail.is_empty() {
        let mut last = [0; WORD];
        last[..tail.len()].copy_from_slice(tail);
        rest[whole.len()].store(u64::from_ne_bytes(last), Ordering::Relaxed);
    }
}

fn load(words: &[AtomicU64], buffer: &mut [u64]) {
    for (value, word) in buffer.iter_mut().zip(words) {
        *value = word.load(Ordering::Relaxed);
    }
}

#[cfg(test)]
impl<const SLOTS: usize, const WORDS: usize> RingMemory<SLOTS, WORDS> {
    fn new() -> Self {
        let words = || std::array::from_fn(|_| AtomicU64::new(0));
        let slot = |_| Slot { sequence: AtomicU64::new(0), words: words() };
        let taken = Taken { slots: AtomicU64::new(0), words: AtomicU64::new(0) };
        let ring = std::array::from_fn(|_| AtomicU64::new(0));
        Self { slots: std::array::from_fn(slot), taken, words: ring }
    }

    /// Stores a sequence number and a header as a peer that breaks the protocol may.
    #[cfg(not(talpf_loom))]
    pub(super) fn forge(&self, slot: usize, sequence: u64, words: [u64; 7]) {
        let slot = &self.slots[slot % SLOTS];
        for (word, value) in slot.words.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        slot.sequence.store(sequence, Ordering::Release);
    }

    /// Stores counts of what was taken, as a peer that breaks the protocol may.
    #[cfg(not(talpf_loom))]
    pub(super) fn forge_taken(&self, slots: u64, words: u64) {
        self.taken.words.store(words, Ordering::Release);
        self.taken.slots.store(slots, Ordering::Release);
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
#[cfg(all(test, not(talpf_loom)))]
mod tests;
