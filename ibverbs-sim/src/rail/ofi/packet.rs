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

/// Frame of the rail itself. Its kinds are beyond those of other frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control<'a> {
    /// First frame to a process, with the address of the responder of this one; empty if it has none.
    Greeting(&'a [u8]),
    /// Address of a new responder; empty for none. Nothing can be read by the earlier one, which is closed.
    Responder(&'a [u8]),
    /// Last frame to a process.
    Parting,
    /// Announcement of a write.
    Announcement(Announcement),
    /// Read of memory of the receiver.
    Read(ReadRequest),
    /// Announcement of the answer to a read.
    Answer(ReadAnswer),
    /// Refusal of a read.
    ReadRefused { read: u32 },
    /// Answer to an announcement: its bytes are where they belong, or refused.
    Fetched { number: u32, status: CompletionStatus },
    /// Answer to an announcement whose bytes are refused, and may have been read in part.
    Broken { number: u32 },
    /// Answer to an announcement whose bytes cannot be read.
    Unread { number: u32 },
}

/// Announcement of a write, whose bytes the target may read until it has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    /// Number of the announcement, of all to its receiver.
    pub(super) number: u32,
    pub(super) length: u32,
    pub(super) source: Exposed,
    pub(super) target: Target,
}

/// Memory that a write belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) key: u64,
    pub(super) offset: u64,
    /// Number of a second key that the write needs; 0 for none.
    pub(super) permit: u64,
    /// Notice after all bytes.
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

/// Announcement of the answer to a read, whose bytes its receiver may read until it has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadAnswer {
    /// Number of the announcement, of all to its receiver.
    pub(super) number: u32,
    /// Number of the read.
    pub(super) read: u32,
    pub(super) source: Exposed,
}

const GREETING: u64 = 32;
const RESPONDER: u64 = 33;
const PARTING: u64 = 34;
const ANNOUNCEMENT: u64 = 35;
const ANNOUNCEMENT_WITH_NOTICE: u64 = 36;
const READ: u64 = 37;
const ANSWER: u64 = 38;
const READ_REFUSED: u64 = 39;
const FETCHED: u64 = 40;
const BROKEN: u64 = 41;
const UNREAD: u64 = 42;

/// Position of the number of an announcement of a write in the header of its frame.
const NUMBER_SHIFT: u32 = 16;

impl<'a> Control<'a> {
    /// Returns `true` if the first word of a frame is one of control.
    pub(super) fn is_one(header: u64) -> bool {
        header & 0xff >= GREETING
    }

    /// Returns the words of the frame, their number, and its body.
    pub(super) fn encode(self) -> ([u64; MAX_HEAD], usize, &'a [u8]) {
        let none: &[u8] = &[];
        let (kind, rest, body): (u64, &[u64], &[u8]) = match self {
            Self::Greeting(address) => (GREETING, &[], address),
            Self::Responder(address) => (RESPONDER, &[], address),
            Self::Parting => (PARTING, &[], none),
            Self::Announcement(Announcement { number, length, source, target }) => {
                let Target { key, offset, permit, notice } = target;
                let Exposed { key: source, start } = source;
                let kind = if notice.is_some() { ANNOUNCEMENT_WITH_NOTICE } else { ANNOUNCEMENT };
                let first = pair(length, notice.unwrap_or(0));
                let kind = kind | u64::from(number) << NUMBER_SHIFT;
                (kind, &[first, key, offset, permit, source, start], none)
            }
            Self::Read(ReadRequest { number, length, key, offset, permit }) => {
                (READ, &[pair(number, length), key, offset, permit], none)
            }
            Self::Answer(ReadAnswer { number, read, source: Exposed { key, start } }) => {
                (ANSWER, &[pair(number, read), key, start], none)
            }
            Self::ReadRefused { read } => (READ_REFUSED, &[u64::from(read)], none),
            Self::Fetched { number, status } => {
                (FETCHED, &[pair(number, status_number(status))], none)
            }
            Self::Broken { number } => (BROKEN, &[u64::from(number)], none),
            Self::Unread { number } => (UNREAD, &[u64::from(number)], none),
        };
        let mut head = [0; MAX_HEAD];
        let words = 1 + rest.len();
        head[0] = kind | (words as u64) << 8 | (body.len() as u64) << 32;
        head[1..words].copy_from_slice(rest);
        (head, words, body)
    }

    /// Decodes a frame of as many words and bytes as its header says.
    pub(super) fn decode(head: &[u64], body: &'a [u8]) -> Result<Self, Malformed> {
        let Some((header, rest)) = head.split_first() else {
            return Err(Malformed("an empty frame"));
        };
        let kind = header & 0xff;
        if !body.is_empty() && ![GREETING, RESPONDER].contains(&kind) {
            return Err(Malformed("a frame of control with a body"));
        }
        match (kind, rest) {
            (GREETING, []) => Ok(Self::Greeting(body)),
            (RESPONDER, []) => Ok(Self::Responder(body)),
            (PARTING, []) => Ok(Self::Parting),
            (
                ANNOUNCEMENT | ANNOUNCEMENT_WITH_NOTICE,
                &[first, key, offset, permit, source, start],
            ) => {
                let (length, notice) = split(first);
                let notice = (kind == ANNOUNCEMENT_WITH_NOTICE).then_some(notice);
                Ok(Self::Announcement(Announcement {
                    number: (header >> NUMBER_SHIFT & 0xffff) as u32,
                    length,
                    source: Exposed { key: source, start },
                    target: Target { key, offset, permit, notice },
                }))
            }
            (READ, &[first, key, offset, permit]) => {
                let (number, length) = split(first);
                Ok(Self::Read(ReadRequest { number, length, key, offset, permit }))
            }
            (ANSWER, &[first, key, start]) => {
                let (number, read) = split(first);
                Ok(Self::Answer(ReadAnswer { number, read, source: Exposed { key, start } }))
            }
            (READ_REFUSED, &[read]) => Ok(Self::ReadRefused { read: read as u32 }),
            (FETCHED, &[first]) => {
                let (number, status_number) = split(first);
                Ok(Self::Fetched { number, status: status(status_number)? })
            }
            (BROKEN, &[number]) => Ok(Self::Broken { number: number as u32 }),
            (UNREAD, &[number]) => Ok(Self::Unread { number: number as u32 }),
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
        let source = Exposed { key: u64::MAX, start: 1 << 40 };
        let (key, offset, permit) = (7 << 32, u64::MAX, 1);
        let (number, length) = (127, u32::MAX);
        let announcement = |notice| {
            let target = Target { key, offset, permit, notice };
            Control::Announcement(Announcement { number, length, source, target })
        };
        for control in [
            Control::Greeting(&[]),
            Control::Greeting(b"address"),
            Control::Responder(b"another"),
            Control::Parting,
            announcement(None),
            announcement(Some(u32::MAX)),
            Control::Read(ReadRequest { number, length, key, offset, permit }),
            Control::Answer(ReadAnswer { number, read: 63, source }),
            Control::ReadRefused { read: number },
            Control::Fetched { number, status: CompletionStatus::RemoteAccess },
            Control::Broken { number },
            Control::Unread { number },
        ] {
            let (head, words, body) = control.encode();
            assert!(Control::is_one(head[0]));
            assert_eq!(Control::decode(&head[..words], body), Ok(control));
            assert!(Control::decode(&head[..words - 1], body).is_err());
            let has_address = matches!(control, Control::Greeting(_) | Control::Responder(_));
            assert_eq!(Control::decode(&head[..words], &[1]).is_ok(), has_address);
        }
        assert!(!Control::is_one(31));
        assert!(Control::decode(&[], &[]).is_err());
    }
}
