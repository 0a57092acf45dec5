//! Packets: what a message of libfabric carries.
//!
//! A packet begins with an [`Envelope`], as neither the sender nor the order of arrival is certain:
//! some providers do not say who has sent a message, and a long message may arrive after a short one
//! that was sent later. Behind it there is a frame, or a frame of control.

use crate::rail::frame::{KeyClaim, MAX_HEAD, Malformed};

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
    /// First frame to a process.
    Greeting,
    /// Last frame to a process.
    Parting,
    /// Question of an origin whether it may use memory of the receiver.
    Ask { operation: u32, is_write: bool, claim: KeyClaim, length: u64 },
    /// Consent to the question, with the address and the key of the provider.
    Grant { operation: u32, address: u64, key: u64 },
    /// Refusal of the question.
    Refusal { operation: u32 },
    /// End of the use of memory.
    Done { key: u64, notice: Option<u32> },
}

const GREETING: u64 = 32;
const PARTING: u64 = 33;
const ASK_TO_READ: u64 = 34;
const ASK_TO_WRITE: u64 = 35;
const GRANT: u64 = 36;
const REFUSAL: u64 = 37;
const DONE: u64 = 38;
const DONE_WITH_NOTICE: u64 = 39;

impl Control {
    /// Returns `true` if the first word of a frame is one of control.
    pub(super) fn is_one(header: u64) -> bool {
        header & 0xff >= GREETING
    }

    /// Returns the words of the frame, and their number.
    pub(super) fn encode(self) -> ([u64; MAX_HEAD], usize) {
        let mut head = [0; MAX_HEAD];
        let (kind, rest): (u64, &[u64]) = match self {
            Self::Greeting => (GREETING, &[]),
            Self::Parting => (PARTING, &[]),
            Self::Ask { operation, is_write, claim, length } => {
                let kind = if is_write { ASK_TO_WRITE } else { ASK_TO_READ };
                (kind, &[u64::from(operation), claim.key, claim.offset, length])
            }
            Self::Grant { operation, address, key } => {
                (GRANT, &[u64::from(operation), address, key])
            }
            Self::Refusal { operation } => (REFUSAL, &[u64::from(operation)]),
            Self::Done { key, notice: None } => (DONE, &[key]),
            Self::Done { key, notice: Some(notice) } => {
                (DONE_WITH_NOTICE, &[key, u64::from(notice)])
            }
        };
        let words = 1 + rest.len();
        head[0] = kind | (words as u64) << 8;
        head[1..words].copy_from_slice(rest);
        (head, words)
    }

    /// Decodes a frame of as many words as its header says.
    pub(super) fn decode(head: &[u64], body: &[u8]) -> Result<Self, Malformed> {
        let Some((header, rest)) = head.split_first().filter(|_| body.is_empty()) else {
            return Err(Malformed("a frame of control with a body"));
        };
        let kind = header & 0xff;
        match (kind, rest) {
            (GREETING, []) => Ok(Self::Greeting),
            (PARTING, []) => Ok(Self::Parting),
            (ASK_TO_READ | ASK_TO_WRITE, &[operation, key, offset, length]) => Ok(Self::Ask {
                operation: operation as u32,
                is_write: kind == ASK_TO_WRITE,
                claim: KeyClaim { key, offset },
                length,
            }),
            (GRANT, &[operation, address, key]) => {
                Ok(Self::Grant { operation: operation as u32, address, key })
            }
            (REFUSAL, &[operation]) => Ok(Self::Refusal { operation: operation as u32 }),
            (DONE, &[key]) => Ok(Self::Done { key, notice: None }),
            (DONE_WITH_NOTICE, &[key, notice]) => {
                Ok(Self::Done { key, notice: Some(notice as u32) })
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
        let claim = KeyClaim { key: 1 << 40 | 7, offset: u64::MAX };
        let (operation, length) = (u32::MAX, u64::MAX - 1);
        for control in [
            Control::Greeting,
            Control::Parting,
            Control::Ask { operation, is_write: true, claim, length },
            Control::Ask { operation, is_write: false, claim, length },
            Control::Grant { operation, address: u64::MAX, key: 3 },
            Control::Refusal { operation },
            Control::Done { key: 5, notice: None },
            Control::Done { key: 5, notice: Some(0) },
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
