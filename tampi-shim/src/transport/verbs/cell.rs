//! Cells: the entries of a ring, which one rank writes and another takes.
//!
//! ```text
//! word  0..5   up to 40 bytes of eager messages, or the numbers of a control message
//! word  5      length of an eager message (low half), source (high half)
//! word  6      context, tag
//! word  7      stamp (low half), kind, number of eager messages after the first
//! ```
//!
//! The device writes word 7 last. A cell has arrived once it has the stamp of its number.
//! Consecutive eager messages with equal words 5 and 6 share a cell while they fit. The bytes of an
//! eager message that does not fit into one cell are in the cells after its first.

use super::rtr_table::{ContextTag, Rtr};
use crate::matching::Key;
use crate::rank::Rank;
use crate::tag::Tag;
use crate::transport::ContextId;

/// Stands for the slot of a receive that does not exist.
const NOTHING: u32 = u32::MAX;

/// Length of a cell in bytes.
pub(super) const CELL: usize = 64;
/// Length of a cell in words.
pub(super) const WORDS: usize = 8;
/// Longest eager message that fits into one cell, in bytes.
pub(super) const INLINE: usize = 40;
/// Unit of the count of further messages in word 7.
const ONE_MORE: u64 = 1 << 40;

/// Kind of a cell: an eager message, or a control message of the rendezvous protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CellKind {
    /// Eager message with its bytes, or several short ones of the same envelope and length.
    Eager = 1,
    /// Eager message of a synchronous send, whose end the receiver reports ([`CellKind::FinSend`]).
    /// The bytes are in the cells after this one, and word 0 is the number of the send.
    EagerSynchronous,
    /// Ready to send: a [`RemoteLayout`] to read the message from, and the number of the send.
    Rts,
    /// Finished: the send with this number (word 0) has ended.
    FinSend,
    /// Ready to receive: an [`Rtr`].
    Rtr,
    /// Ready to send, in answer to an RTR: a message of this length (word 1) is matched to the
    /// receive with this number (word 0) and will be written to its buffer.
    RtrMatched,
    /// Finished: the message is written to the receive with this number (word 0).
    FinReceive,
    /// Asks the source to forget the RTR of the receive with this number (word 0), which is to be
    /// cancelled.
    Cancel,
    /// Answers [`CellKind::Cancel`]: no later message will be matched to the receive with this
    /// number (word 0).
    CancelAck,
}

impl CellKind {
    fn of(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(CellKind::Eager),
            2 => Some(CellKind::EagerSynchronous),
            3 => Some(CellKind::Rts),
            4 => Some(CellKind::FinSend),
            5 => Some(CellKind::Rtr),
            6 => Some(CellKind::RtrMatched),
            7 => Some(CellKind::FinReceive),
            8 => Some(CellKind::Cancel),
            9 => Some(CellKind::CancelAck),
            _ => None,
        }
    }
}

/// Byte layout of memory at a peer, as the peer describes it: `rows` rows of `row_bytes` bytes
/// each, `stride_bytes` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RemoteLayout {
    pub(super) address: u64,
    pub(super) key: u32,
    pub(super) rows: u32,
    pub(super) row_bytes: u64,
    pub(super) stride_bytes: u64,
}

impl RemoteLayout {
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.rows).saturating_mul(self.row_bytes)
    }
}

/// Last words of a cell: envelope, kind and stamp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Length of the message in bytes, and its source.
    pub(super) length: u64,
    /// Context and tag.
    pub(super) about: u64,
    /// Stamp, kind, and number of messages after the first.
    pub(super) last: u64,
}

/// A cell that carries an envelope or a control message, as words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell(pub(super) [u64; WORDS]);

impl Cell {
    /// Creates a cell with the envelope of a message.
    #[inline]
    pub(super) fn of_message(kind: CellKind, key: &Key, length: u32) -> Self {
        let length = u64::from(length) | u64::from(key.source.0) << 32;
        let about = u64::from(key.context.0) | u64::from(key.tag.0) << 32;
        Cell([0, 0, 0, 0, 0, length, about, u64::from(kind as u8) << 32])
    }

    /// Creates a control message about the peer's operation with this number.
    fn control_message(kind: CellKind, number: u64) -> Self {
        let mut cell = Cell([0; WORDS]);
        cell.0[0] = number;
        cell.0[7] = u64::from(kind as u8) << 32;
        cell
    }

    pub(super) fn fin_send(send: u64) -> Self {
        Self::control_message(CellKind::FinSend, send)
    }

    pub(super) fn fin_receive(receive: u64) -> Self {
        Self::control_message(CellKind::FinReceive, receive)
    }

    pub(super) fn cancel(receive: u64) -> Self {
        Self::control_message(CellKind::Cancel, receive)
    }

    pub(super) fn cancel_ack(receive: u64) -> Self {
        Self::control_message(CellKind::CancelAck, receive)
    }

    /// Creates the RTS of a message in the memory `remote`.
    pub(super) fn of_rts(key: &Key, remote: &RemoteLayout, send: u64) -> Self {
        Self::of_message(CellKind::Rts, key, 0).with(remote, send)
    }

    /// Creates the answer to an RTR: a message of `bytes` bytes is matched to the receive.
    pub(super) fn rtr_matched(key: &Key, receive: u64, bytes: u64) -> Self {
        let mut cell = Self::of_message(CellKind::RtrMatched, key, 0);
        cell.0[0] = receive;
        cell.0[1] = bytes;
        cell
    }

    /// Creates an RTR.
    pub(super) fn of_rtr(rtr: &Rtr) -> Self {
        let Rtr { context_tag, remote, receive, previous, taken } = rtr;
        let source = Rank(previous.unwrap_or(NOTHING));
        let key = Key { context: context_tag.context, source, tag: context_tag.tag };
        Self::of_message(CellKind::Rtr, &key, *taken).with(remote, *receive)
    }

    fn with(mut self, remote: &RemoteLayout, number: u64) -> Self {
        self.0[0] = remote.address;
        self.0[1] = u64::from(remote.key) | u64::from(remote.rows) << 32;
        self.0[2] = remote.row_bytes;
        self.0[3] = remote.stride_bytes;
        self.0[4] = number;
        self
    }

    /// Returns the words with the stamp of cell number `number`.
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

    /// Reads the RTR from a cell of that kind.
    pub(super) fn rtr(&self) -> Rtr {
        let (remote, receive) = self.rts();
        let Key { context, source, tag } = self.key();
        let previous = (source.0 != NOTHING).then_some(source.0);
        let context_tag = ContextTag { context, tag };
        Rtr { context_tag, remote, receive, previous, taken: self.head().length() as u32 }
    }

    /// Reads the layout of the message and the number of the send from an RTS.
    pub(super) fn rts(&self) -> (RemoteLayout, u64) {
        let remote = RemoteLayout {
            address: self.0[0],
            key: self.0[1] as u32,
            rows: (self.0[1] >> 32) as u32,
            row_bytes: self.0[2],
            stride_bytes: self.0[3],
        };
        (remote, self.0[4])
    }
}

impl Head {
    /// Returns the kind, or `None` for a byte that no sender of this crate writes.
    #[inline]
    pub(super) fn kind(&self) -> Option<CellKind> {
        CellKind::of((self.last >> 32) as u8)
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

    /// Returns the number of short messages in the cell.
    #[inline]
    pub(super) fn count(&self) -> usize {
        usize::from((self.last >> 40) as u8) + 1
    }

    /// Returns `true` if the cell holds eager messages with their bytes.
    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.kind() == Some(CellKind::Eager) && self.length() <= INLINE
    }
}

/// Writes the cell of a short eager message to `words`, which are zero.
///
/// The cell is built in its final place: a copy of words that were just written would stall.
#[inline]
pub(super) fn write_short(words: &mut [u64; WORDS], number: u64, key: &Key, bytes: &[u8]) {
    let head = Cell::of_message(CellKind::Eager, key, bytes.len() as u32);
    [words[5], words[6], words[7]] = [head.0[5], head.0[6], head.0[7] | u64::from(stamp(number))];
    match <[u8; 8]>::try_from(bytes) {
        // The most frequent length, without a call.
        Ok(word) => words[0] = u64::from_ne_bytes(word),
        Err(_) => bytemuck::bytes_of_mut(words)[..bytes.len()].copy_from_slice(bytes),
    }
}

/// Adds a short eager message to a cell of such messages, if envelope and length are equal and it
/// fits. Returns `true` if the message was added.
#[inline]
pub(super) fn join_short(words: &mut [u64; WORDS], key: &Key, bytes: &[u8]) -> bool {
    let [.., length, about, _] = Cell::of_message(CellKind::Eager, key, bytes.len() as u32).0;
    let count = Head { length, about, last: words[7] }.count();
    // An empty message counts as one byte, so that the count has room.
    if (words[5], words[6]) != (length, about) || (count + 1) * bytes.len().max(1) > INLINE {
        return false;
    }
    match <[u8; 8]>::try_from(bytes) {
        Ok(word) => words[count] = u64::from_ne_bytes(word),
        Err(_) => {
            let start = count * bytes.len();
            bytemuck::bytes_of_mut(words)[start..start + bytes.len()].copy_from_slice(bytes);
        }
    }
    words[7] += ONE_MORE;
    true
}

/// Returns the stamp of cell number `number`. It differs from a cleared stamp and from those of the
/// cells of earlier laps in the same place.
#[inline]
pub(super) fn stamp(number: u64) -> u32 {
    number as u32 | 1 << 31
}

/// Returns the number of cells of an eager message. The bytes of a synchronous one are never in its
/// first cell.
#[inline]
pub(super) fn cells_of(length: usize, synchronous: bool) -> usize {
    if length <= INLINE && !synchronous { 1 } else { 1 + length.div_ceil(CELL) }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::super::ring_buffer::CELLS;
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
