//! What processes say to each other, and how it becomes bytes and back.
//!
//! Numbers are little-endian; the first byte is the kind.

use super::Ask;
use crate::numbers::{Lane, Rank, Round};
use crate::window::{Claim, Kind};

/// A letter that has arrived, or is to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Letter<'a> {
    /// May an operation land?
    Ask { number: u32, ask: Ask, claim: Claim },
    /// It may.
    Go { number: u32 },
    /// It may not: no window of the round covers it.
    Refused { number: u32 },
    /// The part that the sender gives in a collective call.
    Given { number: u64, part: &'a [u8] },
    /// The run has failed.
    Failed { first: Rank, reason: &'a str },
    /// The sender needs nothing more.
    Bye,
    /// Nothing goes on at the sender; what it has counted by then.
    Waiting(&'a [u8]),
}

/// By their numbers.
const KINDS: [Kind; 3] = [Kind::Read, Kind::Update, Kind::Write];

const ASK: u8 = 0;
const GO: u8 = 1;
const REFUSED: u8 = 2;
const GIVEN: u8 = 3;
const FAILED: u8 = 4;
const BYE: u8 = 5;
const WAITING: u8 = 6;

impl<'a> Letter<'a> {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let numbered = |kind: u8, number: u32| [&[kind][..], &number.to_le_bytes()].concat();
        match self {
            Letter::Ask { number, ask: Ask { target, lane, round }, claim } => {
                let mut bytes = numbered(ASK, number);
                bytes.extend([lane.0, claim.kind as u8, u8::from(claim.raw)]);
                bytes.extend(target.0.to_le_bytes());
                bytes.extend(claim.source.0.to_le_bytes());
                bytes.extend(claim.slot.to_le_bytes());
                bytes.extend(round.0.to_le_bytes());
                bytes.extend(claim.index.to_le_bytes());
                bytes.extend(claim.end.to_le_bytes());
                bytes
            }
            Letter::Go { number } => numbered(GO, number),
            Letter::Refused { number } => numbered(REFUSED, number),
            Letter::Given { number, part } => [&[GIVEN][..], &number.to_le_bytes(), part].concat(),
            Letter::Waiting(traffic) => [&[WAITING], traffic].concat(),
            Letter::Failed { first, reason } => {
                let mut bytes = numbered(FAILED, first.0);
                bytes.extend(reason.as_bytes());
                bytes
            }
            Letter::Bye => vec![BYE],
        }
    }

    /// The letter that these bytes are, if they are one.
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let mut reader = Reader(rest);
        let letter = match *kind {
            ASK => {
                let number = reader.word()?;
                let (lane, kind) = (Lane(reader.byte()?), reader.byte()?);
                let (kind, raw) = (*KINDS.get(usize::from(kind))?, reader.byte()? != 0);
                let (target, source) = (Rank(reader.word()?), Rank(reader.word()?));
                let (slot, round) = (reader.word()?, Round(reader.long()?));
                let (index, end) = (reader.long()?, reader.long()?);
                let claim = Claim { source, slot, index, end, kind, raw };
                Letter::Ask { number, ask: Ask { target, lane, round }, claim }
            }
            GO => Letter::Go { number: reader.word()? },
            REFUSED => Letter::Refused { number: reader.word()? },
            GIVEN => {
                let number = reader.long()?;
                return Some(Letter::Given { number, part: reader.0 });
            }
            WAITING => return Some(Letter::Waiting(rest)),
            FAILED => {
                let first = Rank(reader.word()?);
                return Some(Letter::Failed { first, reason: std::str::from_utf8(reader.0).ok()? });
            }
            BYE => Letter::Bye,
            _ => return None,
        };
        reader.0.is_empty().then_some(letter)
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*chunk)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(u8::from_le_bytes(self.chunk()?))
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.chunk()?))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.chunk()?))
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_letter_comes_back(
            kind in 0..7u8, number: u32, lane: u8, ranks: (u32, u32), slot: u32,
            longs: (u64, u64, u64), access in 0..3usize, raw: bool, given: Vec<u8>, reason: String,
        ) {
            let (round, index, end) = longs;
            let ask = Ask { target: Rank(ranks.0), lane: Lane(lane), round: Round(round) };
            let claim = Claim { source: Rank(ranks.1), slot, index, end, kind: KINDS[access], raw };
            let letter = match kind {
                ASK => Letter::Ask { number, ask, claim },
                GO => Letter::Go { number },
                REFUSED => Letter::Refused { number },
                GIVEN => Letter::Given { number: round, part: &given },
                WAITING => Letter::Waiting(&given),
                FAILED => Letter::Failed { first: Rank(number), reason: &reason },
                _ => Letter::Bye,
            };
            let sent = letter.to_bytes();
            prop_assert_eq!(Letter::from_bytes(&sent), Some(letter));
        }

        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>) {
            let _ = Letter::from_bytes(&bytes);
        }
    }
}
