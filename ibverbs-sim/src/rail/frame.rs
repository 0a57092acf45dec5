//! Frames: the messages of rails whose operations are messages.
//!
//! A frame is a header of one word, up to [`MAX_HEAD`] words in all with what follows it, and a body
//! of bytes. The header has the kind in its first byte, the number of words in its second one, and
//! the bytes of the body in its upper half.

use crate::CompletionStatus;

/// Most words of the head of a frame, its header included.
pub(super) const MAX_HEAD: usize = 7;

/// Claim to memory of the process that receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyClaim {
    pub(super) key: u64,
    pub(super) offset: u64,
}

/// A message of a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    Message(&'a [u8]),
    Notice(u32),
    /// A piece of a write, to `claim`. `remaining` counts the bytes from the start of the piece.
    Write {
        operation: u32,
        claim: KeyClaim,
        remaining: u64,
        notice: Option<u32>,
        bytes: &'a [u8],
    },
    WriteDone {
        operation: u32,
        status: CompletionStatus,
    },
    Read {
        operation: u32,
        claim: KeyClaim,
        length: u64,
    },
    /// A piece of the data of a read, `remaining` as above; or the refusal of a read.
    Data {
        operation: u32,
        status: CompletionStatus,
        remaining: u64,
        bytes: &'a [u8],
    },
}

/// Error of words that are no frame, and what they are instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

const MESSAGE: u64 = 1;
const NOTICE: u64 = 2;
const WRITE: u64 = 3;
const WRITE_WITH_NOTICE: u64 = 4;
const WRITE_DONE: u64 = 5;
const READ: u64 = 6;
const DATA: u64 = 7;

/// Statuses that a peer may send, by their numbers in frames.
const STATUSES: [CompletionStatus; 2] = [CompletionStatus::Success, CompletionStatus::RemoteAccess];

/// A frame in the form in which it travels.
pub(super) struct Encoded<'a> {
    head: [u64; MAX_HEAD],
    words: usize,
    pub(super) body: &'a [u8],
}

impl Encoded<'_> {
    pub(super) fn head(&self) -> &[u64] {
        &self.head[..self.words]
    }
}

/// Lengths that a header states, not checked against any limit of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    /// Words of the head, 1 to [`MAX_HEAD`].
    pub(super) head: usize,
    /// Bytes of the body.
    pub(super) body: usize,
}

impl Lengths {
    pub(super) fn of(header: u64) -> Result<Self, Malformed> {
        let head = (header >> 8 & 0xff) as usize;
        if !(1..=MAX_HEAD).contains(&head) {
            return Err(Malformed("a frame with an impossible head"));
        }
        Ok(Self { head, body: (header >> 32) as usize })
    }

    /// Returns the words of head and body.
    pub(super) fn words(self) -> usize {
        self.head + self.body.div_ceil(size_of::<u64>())
    }
}

/// Cuts a packet of little-endian words and a body of bytes into the words of its head, the number of
/// those, and its body.
pub(super) fn cut(packet: &[u8]) -> Result<([u64; MAX_HEAD], usize, &[u8]), Malformed> {
    const WORD: usize = size_of::<u64>();
    let (words, _) = packet.as_chunks::<WORD>();
    let header = words.first().ok_or(Malformed("a packet without a header"))?;
    let lengths = Lengths::of(u64::from_le_bytes(*header))?;
    if packet.len() != lengths.head * WORD + lengths.body {
        return Err(Malformed("a packet of another length than it says"));
    }
    let mut head = [0; MAX_HEAD];
    for (word, bytes) in head.iter_mut().zip(&words[..lengths.head]) {
        *word = u64::from_le_bytes(*bytes);
    }
    Ok((head, lengths.head, &packet[lengths.head * WORD..]))
}

pub(super) fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

pub(super) fn split(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

pub(super) fn status_number(status: CompletionStatus) -> u32 {
    u32::from(status != CompletionStatus::Success)
}

pub(super) fn status(number: u32) -> Result<CompletionStatus, Malformed> {
    STATUSES.get(number as usize).copied().ok_or(Malformed("an unknown status"))
}

impl<'a> Frame<'a> {
    pub(super) fn encode(&self) -> Encoded<'a> {
        let none: &[u8] = &[];
        let (kind, rest, body): (u64, &[u64], &[u8]) = match *self {
            Self::Message(bytes) => (MESSAGE, &[], bytes),
            Self::Notice(notice) => (NOTICE, &[u64::from(notice)], none),
            Self::Write { operation, claim, remaining, notice, bytes } => {
                let kind = if notice.is_some() { WRITE_WITH_NOTICE } else { WRITE };
                let first = pair(operation, notice.unwrap_or(0));
                (kind, &[first, claim.key, claim.offset, remaining], bytes)
            }
            Self::WriteDone { operation, status } => {
                (WRITE_DONE, &[pair(operation, status_number(status))], none)
            }
            Self::Read { operation, claim, length } => {
                (READ, &[u64::from(operation), claim.key, claim.offset, length], none)
            }
            Self::Data { operation, status, remaining, bytes } => {
                (DATA, &[pair(operation, status_number(status)), remaining], bytes)
            }
        };
        let words = 1 + rest.len();
        let mut head = [0; MAX_HEAD];
        head[0] = kind | (words as u64) << 8 | (body.len() as u64) << 32;
        head[1..words].copy_from_slice(rest);
        Encoded { head, words, body }
    }

    /// Decodes a frame. `head` and `body` are as long as the header says.
    pub(super) fn decode(head: &[u64], bytes: &'a [u8]) -> Result<Self, Malformed> {
        let Some((header, rest)) = head.split_first() else {
            return Err(Malformed("an empty frame"));
        };
        match (header & 0xff, rest) {
            (MESSAGE, []) => Ok(Self::Message(bytes)),
            (NOTICE, &[notice]) if bytes.is_empty() => Ok(Self::Notice(notice as u32)),
            (kind @ (WRITE | WRITE_WITH_NOTICE), &[first, key, offset, remaining]) => {
                let (operation, notice) = split(first);
                let notice = (kind == WRITE_WITH_NOTICE).then_some(notice);
                let claim = KeyClaim { key, offset };
                Ok(Self::Write { operation, claim, remaining, notice, bytes })
            }
            (WRITE_DONE, &[first]) if bytes.is_empty() => {
                let (operation, number) = split(first);
                Ok(Self::WriteDone { operation, status: status(number)? })
            }
            (READ, &[operation, key, offset, length]) if bytes.is_empty() => {
                let claim = KeyClaim { key, offset };
                Ok(Self::Read { operation: operation as u32, claim, length })
            }
            (DATA, &[first, remaining]) => {
                let (operation, number) = split(first);
                Ok(Self::Data { operation, status: status(number)?, remaining, bytes })
            }
            _ => Err(Malformed("a frame of no known kind")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode<'a>(encoded: &Encoded<'a>) -> Result<Frame<'a>, Malformed> {
        let lengths = Lengths::of(encoded.head()[0])?;
        assert_eq!(lengths, Lengths { head: encoded.head().len(), body: encoded.body.len() });
        Frame::decode(encoded.head(), encoded.body)
    }

    #[test]
    fn every_frame_comes_back() {
        let claim = KeyClaim { key: 1 << 40 | 7, offset: u64::MAX };
        let status = CompletionStatus::RemoteAccess;
        let (operation, bytes) = (u32::MAX, &b"some bytes"[..]);
        for frame in [
            Frame::Message(&[]),
            Frame::Message(bytes),
            Frame::Notice(u32::MAX),
            Frame::Write { operation, claim, remaining: 10, notice: None, bytes },
            Frame::Write { operation, claim, remaining: 10, notice: Some(0), bytes },
            Frame::WriteDone { operation, status },
            Frame::Read { operation, claim, length: u64::MAX },
            Frame::Data { operation, status, remaining: 11, bytes },
        ] {
            assert_eq!(decode(&frame.encode()), Ok(frame));
        }
    }

    proptest! {
        #[test]
        fn words_of_any_content_are_a_frame_or_refused(
            mut head in proptest::collection::vec(any::<u64>(), 1..6),
            body in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let kind = head[0] % 9;
            head[0] = kind | (head.len() as u64) << 8 | (body.len() as u64) << 32;
            if let Ok(frame) = Frame::decode(&head, &body) {
                prop_assert_eq!(decode(&frame.encode()), Ok(frame));
            }
        }
    }
}
