//! Cells: what one rank writes into the ring that another keeps for it.
//!
//! ```text
//! word  0..5   up to 40 bytes of eager messages, or the numbers of another kind
//! word  5      length of an eager message (low half), source (high half)
//! word  6      context, tag
//! word  7      stamp (low half), kind, how many eager messages follow the first
//! ```
//!
//! The device writes word 7 last. A cell is there once it has the stamp of its number. Eager
//! messages that follow each other and have all of words 5 and 6 in common share a cell while they
//! fit. The bytes of one that does not fit into its first cell are in the cells after it.

use super::offers::{Offer, Subject};
use crate::matching::Key;
use crate::rank::Rank;
use crate::tag::Tag;
use crate::transport::ContextId;

/// In place of a slot: there is none.
const NOTHING: u32 = u32::MAX;

/// Bytes of a cell.
pub(super) const CELL: usize = 64;
/// Words of a cell.
pub(super) const WORDS: usize = 8;
/// Bytes of an eager message that fit into its first cell.
pub(super) const INLINE: usize = 40;
/// One more message of a cell, in word 7.
const ONE_MORE: u64 = 1 << 40;

/// What a cell is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A message with its bytes, or several short ones that are alike.
    Eager = 1,
    /// The same, and the sender wants to know when it is matched. Its bytes are in the cells after
    /// this one, and word 0 is the number of the send.
    EagerSynchronous,
    /// A message whose bytes can be read: a [`Place`] and the number of the send.
    Announce,
    /// The send of this number (word 0) has ended.
    Done,
    /// A receive that waits, and where its bytes go: an [`Offer`].
    Offer,
    /// A message of some bytes (word 1) goes to the offered receive of this number (word 0).
    Claim,
    /// The bytes of that message are there.
    Filled,
    /// The offered receive of this number (word 0) is to be cancelled.
    Withdraw,
    /// No message will go to it any more, but for those sent before.
    Withdrawn,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Kind::Eager),
            2 => Some(Kind::EagerSynchronous),
            3 => Some(Kind::Announce),
            4 => Some(Kind::Done),
            5 => Some(Kind::Offer),
            6 => Some(Kind::Claim),
            7 => Some(Kind::Filled),
            8 => Some(Kind::Withdraw),
            9 => Some(Kind::Withdrawn),
            _ => None,
        }
    }
}

/// Memory at a peer: `rows` stretches of `row_bytes`, `stride_bytes` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) address: u64,
    pub(super) key: u32,
    pub(super) rows: u32,
    pub(super) row_bytes: u64,
    pub(super) stride_bytes: u64,
}

impl Place {
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.rows).saturating_mul(self.row_bytes)
    }
}

/// What a first cell says about itself: its last words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Bytes of the message, and its source.
    pub(super) length: u64,
    /// Context and tag.
    pub(super) about: u64,
    /// Kind, stamp, and how many messages follow the first.
    pub(super) last: u64,
}

/// A first cell as numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell(pub(super) [u64; WORDS]);

impl Cell {
    /// A cell that is about a message.
    #[inline]
    pub(super) fn of_message(kind: Kind, key: &Key, length: u32) -> Self {
        let length = u64::from(length) | u64::from(key.source.0) << 32;
        let about = u64::from(key.context.0) | u64::from(key.tag.0) << 32;
        Cell([0, 0, 0, 0, 0, length, about, u64::from(kind as u8) << 32])
    }

    /// A cell about the peer's operation of this number.
    fn notice(kind: Kind, number: u64) -> Self {
        let mut cell = Cell([0; WORDS]);
        cell.0[0] = number;
        cell.0[7] = u64::from(kind as u8) << 32;
        cell
    }

    pub(super) fn done(send: u64) -> Self {
        Self::notice(Kind::Done, send)
    }

    pub(super) fn filled(receive: u64) -> Self {
        Self::notice(Kind::Filled, receive)
    }

    pub(super) fn withdraw(receive: u64) -> Self {
        Self::notice(Kind::Withdraw, receive)
    }

    pub(super) fn withdrawn(receive: u64) -> Self {
        Self::notice(Kind::Withdrawn, receive)
    }

    /// A cell that announces a message at `place`.
    pub(super) fn announce(key: &Key, place: &Place, send: u64) -> Self {
        Self::of_message(Kind::Announce, key, 0).with(place, send)
    }

    /// A cell that sends a message of `bytes` bytes to an offered receive.
    pub(super) fn claim(key: &Key, receive: u64, bytes: u64) -> Self {
        let mut cell = Self::of_message(Kind::Claim, key, 0);
        cell.0[0] = receive;
        cell.0[1] = bytes;
        cell
    }

    /// A cell that offers a receive.
    pub(super) fn offer(offer: &Offer) -> Self {
        let Offer { subject, place, receive, before, taken } = offer;
        let source = Rank(before.unwrap_or(NOTHING));
        let key = Key { context: subject.context, source, tag: subject.tag };
        Self::of_message(Kind::Offer, &key, *taken).with(place, *receive)
    }

    fn with(mut self, place: &Place, number: u64) -> Self {
        self.0[0] = place.address;
        self.0[1] = u64::from(place.key) | u64::from(place.rows) << 32;
        self.0[2] = place.row_bytes;
        self.0[3] = place.stride_bytes;
        self.0[4] = number;
        self
    }

    /// The words with the stamp of cell number `number`.
    #[inline]
    pub(super) fn stamped(mut self, number: u64) -> [u64; WORDS] {
        self.0[7] |= u64::from(stamp(number));
        self.0
    }

    fn head(&self) -> Head {
        let [.., length, about, last] = self.0;
        Head { length, about, last }
    }

    #[inline]
    pub(super) fn key(&self) -> Key {
        self.head().key()
    }

    /// The offer in a cell of that kind.
    pub(super) fn offered(&self) -> Offer {
        let (place, receive) = self.announced();
        let Key { context, source, tag } = self.key();
        let before = (source.0 != NOTHING).then_some(source.0);
        let subject = Subject { context, tag };
        Offer { subject, place, receive, before, taken: self.head().length() as u32 }
    }

    /// The place of an announced message, and the number of the send.
    pub(super) fn announced(&self) -> (Place, u64) {
        let place = Place {
            address: self.0[0],
            key: self.0[1] as u32,
            rows: (self.0[1] >> 32) as u32,
            row_bytes: self.0[2],
            stride_bytes: self.0[3],
        };
        (place, self.0[4])
    }
}

impl Head {
    /// `None` for bytes that no sender of this crate writes.
    #[inline]
    pub(super) fn kind(&self) -> Option<Kind> {
        Kind::of((self.last >> 32) as u8)
    }

    #[inline]
    pub(super) fn length(&self) -> usize {
        self.length as u32 as usize
    }

    #[inline]
    pub(super) fn key(&self) -> Key {
        Key {
            context: ContextId(self.about as u32),
            source: Rank((self.length >> 32) as u32),
            tag: Tag((self.about >> 32) as u32),
        }
    }

    /// How many messages there are in a cell of short ones.
    #[inline]
    pub(super) fn count(&self) -> usize {
        usize::from((self.last >> 40) as u8) + 1
    }

    /// Whether it is of messages whose bytes are in their cell.
    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.kind() == Some(Kind::Eager) && self.length() <= INLINE
    }
}

/// Writes the cell of an eager message that fits into it to `place`, which is zero.
///
/// Word by word, and where it stays: what is copied as soon as it is written has to wait for it.
#[inline]
pub(super) fn write_short(place: &mut [u64; WORDS], number: u64, key: &Key, bytes: &[u8]) {
    let head = Cell::of_message(Kind::Eager, key, bytes.len() as u32);
    [place[5], place[6], place[7]] = [head.0[5], head.0[6], head.0[7] | u64::from(stamp(number))];
    match <[u8; 8]>::try_from(bytes) {
        // The most frequent length, without a call.
        Ok(word) => place[0] = u64::from_ne_bytes(word),
        Err(_) => bytemuck::bytes_of_mut(place)[..bytes.len()].copy_from_slice(bytes),
    }
}

/// Adds an eager message to a cell of short ones, if they have everything but their bytes in
/// common and it fits.
#[inline]
pub(super) fn join_short(place: &mut [u64; WORDS], key: &Key, bytes: &[u8]) -> bool {
    let [.., length, about, _] = Cell::of_message(Kind::Eager, key, bytes.len() as u32).0;
    let count = Head { length, about, last: place[7] }.count();
    // An empty message counts as one byte, so that the count has room.
    if (place[5], place[6]) != (length, about) || (count + 1) * bytes.len().max(1) > INLINE {
        return false;
    }
    match <[u8; 8]>::try_from(bytes) {
        Ok(word) => place[count] = u64::from_ne_bytes(word),
        Err(_) => {
            let start = count * bytes.len();
            bytemuck::bytes_of_mut(place)[start..start + bytes.len()].copy_from_slice(bytes);
        }
    }
    place[7] += ONE_MORE;
    true
}

/// Returns the beginning of word 7 of cell number `number`: nothing that a place begins with which
/// was cleared, or which holds a cell of an earlier lap of the ring.
#[inline]
pub(super) fn stamp(number: u64) -> u32 {
    number as u32 | 1 << 31
}

/// Cells of an eager message: the bytes of a synchronous one are never in its first.
#[inline]
pub(super) fn cells_of(length: usize, synchronous: bool) -> usize {
    if length <= INLINE && !synchronous { 1 } else { 1 + length.div_ceil(CELL) }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::super::front::CELLS;
    use super::*;

    #[test]
    fn a_stamp_is_neither_that_of_a_cleared_place_nor_of_the_laps_before() {
        for end in [1 << 31, 1 << 32, u64::from(u32::MAX) * 3, u64::MAX] {
            for number in end - 3 * CELLS as u64..=end.saturating_add(CELLS as u64) {
                assert_ne!(stamp(number), 0, "cell {number}");
                for laps in 1..=2 {
                    let before = number - laps * CELLS as u64;
                    assert_ne!(stamp(number), stamp(before), "cell {number}");
                }
            }
        }
    }
}
