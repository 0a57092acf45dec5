//! Packets: what a message of libfabric carries.
//!
//! A packet begins with an [`Envelope`], as neither the sender nor the order of arrival is certain:
//! some providers do not say who has sent a message, and a long message may arrive after a short one
//! that was sent later. Behind it there is a frame, or a frame of control.

use super::reader::Exposed;
use crate::{
    CompletionStatus,
    rail::frame::{MAX_HEAD, Malformed, pair, split, status, status_number},
};

const WORD: usize = size_of::<u64>();

/// Most bytes before the body of a packet.
pub(super) const MAX_HEAD_BYTES: usize = Envelope::BYTES + MAX_HEAD * WORD;

/// Beginning of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    /// Number that the processes of a run have in common, by which messages of strangers are known.
    pub(super) run: u64,
    /// Process that sends the packet.
    pub(super) process: u32,
    /// Number of the packet, of all from this sender to this receiver.
    pub(super) sequence: u32,
}

impl Envelope {
    const BYTES: usize = 2 * WORD;

    /// Writes an envelope and the words behind it to the start of a buffer. Returns their length.
    pub(super) fn write(self, words: &[u64], to: &mut [u8; MAX_HEAD_BYTES]) -> usize {
        let second = u64::from(self.process) | u64::from(self.sequence) << 32;
        let all = [self.run, second].into_iter().chain(words.iter().copied());
        let mut length = 0;
        for (bytes, word) in to.chunks_exact_mut(WORD).zip(all) {
            bytes.copy_from_slice(&word.to_le_bytes());
            length += WORD;
        }
        length
    }

    /// Reads an envelope. Returns the bytes behind it as well; `None` if the packet is too short.
    pub(super) fn read(packet: &[u8]) -> Option<(Self, &[u8])> {
        let (run, rest) = packet.split_first_chunk::<WORD>()?;
        let (second, rest) = rest.split_first_chunk::<WORD>()?;
        let second = u64::from_le_bytes(*second);
        let (process, sequence) = (second as u32, (second >> 32) as u32);
        Some((Self { run: u64::from_le_bytes(*run), process, sequence }, rest))
    }
}

/// Frame of the rail itself. Its kinds are beyond those of other frames, and it has no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// First frame to a process, with the memory that has what this one announces, if it does.
    Greeting(Option<Exposed>),
    /// Last frame to a process.
    Parting,
    /// Announcement of a piece of a write.
    Announcement(Announcement),
    /// Read of memory of the receiver.
    Read(ReadRequest),
    /// Announcement of a piece of the answer to a read.
    ReadPiece(ReadPiece),
    /// End of the answer to a read, of which no further piece is announced.
    ReadRefused { read: u32 },
    /// Answer to the announcement that begins with a block: its bytes are where they belong, or refused.
    Fetched { block: u32, status: CompletionStatus },
}

/// Piece of a write, which the target may read until it has answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Announcement {
    /// First block of the bytes in the memory with what their process announces.
    pub(super) block: u32,
    pub(super) length: u32,
    /// Number that the pieces of a write have in common, of 24 bits.
    pub(super) transfer: u32,
    /// Number of the key of their target, and the offset there.
    pub(super) key: u64,
    pub(super) offset: u64,
    /// Number of a second key that the write needs; 0 for none.
    pub(super) permit: u64,
    /// Bytes of the write from the start of the piece.
    pub(super) remaining: u32,
    /// Notice after the last piece, which has it, and all before it.
    pub(super) notice: Option<u32>,
}

/// Read of memory of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadRequest {
    /// Number of the read at its sender.
    pub(super) number: u32,
    pub(super) length: u32,
    pub(super) key: u64,
    pub(super) offset: u64,
    /// Number of a second key that the read needs; 0 for none.
    pub(super) permit: u64,
}

/// Piece of the answer to a read, which its receiver may read until it has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadPiece {
    pub(super) block: u32,
    pub(super) length: u32,
    /// Number of the read.
    pub(super) read: u32,
    /// Offset from the start of the read.
    pub(super) offset: u32,
}

const GREETING: u64 = 32;
const PARTING: u64 = 33;
const ANNOUNCEMENT: u64 = 34;
const ANNOUNCEMENT_WITH_NOTICE: u64 = 35;
const FETCHED: u64 = 36;
const READ: u64 = 37;
const READ_PIECE: u64 = 38;
const READ_REFUSED: u64 = 39;

/// Bits of a block in the word that it shares with a transfer.
const BLOCK_BITS: u32 = 8;

impl Control {
    /// Returns `true` if the first word of a frame is one of control.
    pub(super) fn is_one(header: u64) -> bool {
        header & 0xff >= GREETING
    }

    /// Returns the words of the frame, and their number.
    pub(super) fn encode(self) -> ([u64; MAX_HEAD], usize) {
        let (kind, rest): (u64, &[u64]) = match self {
            Self::Greeting(None) => (GREETING, &[]),
            Self::Greeting(Some(Exposed { key, start })) => (GREETING, &[key, start]),
            Self::Parting => (PARTING, &[]),
            Self::Announcement(Announcement {
                block,
                length,
                transfer,
                key,
                offset,
                permit,
                remaining,
                notice,
            }) => {
                let kind = if notice.is_some() { ANNOUNCEMENT_WITH_NOTICE } else { ANNOUNCEMENT };
                let (first, last) = (block | transfer << BLOCK_BITS, notice.unwrap_or(0));
                (kind, &[pair(first, length), key, offset, permit, pair(last, remaining)])
            }
            Self::Read(ReadRequest { number, length, key, offset, permit }) => {
                (READ, &[pair(number, length), key, offset, permit])
            }
            Self::ReadPiece(ReadPiece { block, length, read, offset }) => {
                (READ_PIECE, &[pair(block, length), pair(read, offset)])
            }
            Self::ReadRefused { read } => (READ_REFUSED, &[u64::from(read)]),
            Self::Fetched { block, status } => (FETCHED, &[pair(block, status_number(status))]),
        };
        let mut head = [0; MAX_HEAD];
        let words = 1 + rest.len();
        head[0] = kind | (words as u64) << 8;
        head[1..words].copy_from_slice(rest);
        (head, words)
    }

    /// Decodes a frame of as many words as its header says.
    pub(super) fn decode(head: &[u64], body: &[u8]) -> Result<Self, Malformed> {
        let (Some((header, rest)), []) = (head.split_first(), body) else {
            return Err(Malformed("a frame of control with a body"));
        };
        match (header & 0xff, rest) {
            (GREETING, []) => Ok(Self::Greeting(None)),
            (GREETING, &[key, start]) => Ok(Self::Greeting(Some(Exposed { key, start }))),
            (PARTING, []) => Ok(Self::Parting),
            (
                kind @ (ANNOUNCEMENT | ANNOUNCEMENT_WITH_NOTICE),
                &[first, key, offset, permit, last],
            ) => {
                let ((first, length), (notice, remaining)) = (split(first), split(last));
                let (block, transfer) = (first & ((1 << BLOCK_BITS) - 1), first >> BLOCK_BITS);
                let notice = (kind == ANNOUNCEMENT_WITH_NOTICE).then_some(notice);
                Ok(Self::Announcement(Announcement {
                    block,
                    length,
                    transfer,
                    key,
                    offset,
                    permit,
                    remaining,
                    notice,
                }))
            }
            (READ, &[first, key, offset, permit]) => {
                let (number, length) = split(first);
                Ok(Self::Read(ReadRequest { number, length, key, offset, permit }))
            }
            (READ_PIECE, &[first, second]) => {
                let ((block, length), (read, offset)) = (split(first), split(second));
                Ok(Self::ReadPiece(ReadPiece { block, length, read, offset }))
            }
            (READ_REFUSED, &[read]) => Ok(Self::ReadRefused { read: read as u32 }),
            (FETCHED, &[first]) => {
                let (block, number) = split(first);
                Ok(Self::Fetched { block, status: status(number)? })
            }
            _ => Err(Malformed("a frame of control of no known kind")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_comes_back_before_what_it_carries() {
        let envelope = Envelope { run: u64::MAX - 1, process: 7, sequence: u32::MAX };
        let mut bytes = [0; MAX_HEAD_BYTES];
        assert_eq!(envelope.write(&[1, 2], &mut bytes), 32);
        let (read, rest) = Envelope::read(&bytes[..32]).unwrap();
        assert_eq!((read, rest), (envelope, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0][..]));
        assert_eq!(envelope.write(&[9; MAX_HEAD], &mut bytes), MAX_HEAD_BYTES);
        assert_eq!(Envelope::read(&bytes[..15]), None);
    }

    #[test]
    fn every_frame_of_control_comes_back() {
        let exposed = Exposed { key: u64::MAX, start: 1 << 40 };
        let (key, offset, permit) = (7 << 32, u64::MAX, 1);
        let announcement = Announcement {
            block: 127,
            length: u32::MAX,
            transfer: (1 << 24) - 1,
            key,
            offset,
            permit,
            remaining: u32::MAX - 1,
            notice: None,
        };
        let (number, length) = (63, u32::MAX);
        for control in [
            Control::Greeting(None),
            Control::Greeting(Some(exposed)),
            Control::Parting,
            Control::Announcement(announcement),
            Control::Announcement(Announcement { notice: Some(u32::MAX), ..announcement }),
            Control::Read(ReadRequest { number, length, key, offset, permit }),
            Control::ReadPiece(ReadPiece { block: 127, length, read: number, offset: 7 }),
            Control::ReadRefused { read: number },
            Control::Fetched { block: 3, status: CompletionStatus::RemoteAccess },
        ] {
            let (head, words) = control.encode();
            assert!(Control::is_one(head[0]));
            assert_eq!(Control::decode(&head[..words], &[]), Ok(control));
            assert!(Control::decode(&head[..words], &[1]).is_err());
            assert!(Control::decode(&head[..words - 1], &[]).is_err());
        }
        assert!(!Control::is_one(31));
        assert!(Control::decode(&[], &[]).is_err());
    }
}
