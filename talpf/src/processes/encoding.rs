//! Numbers, claims and notifications as control messages have them.
//!
//! Numbers have as many bytes as they need (LEB128).

use ibverbs_sim::{RemoteAddress, RemoteKey, WordUpdate};
use integer_encoding::VarInt;

use super::WindowRequest;
use crate::notification::{Notification, NotifiedClaim};
use crate::numbers::{LaneNumber, Rank, Round};
use crate::window::{Claim, Kind};

/// The kinds of claims, by their numbers in messages.
pub(super) const KINDS: [Kind; 3] = [Kind::Read, Kind::Update, Kind::Write];

/// Most bytes of a message without the data that it carries.
const HEAD: usize = 120;

/// A message that is being written, up to the data that it carries.
pub(super) struct Writer {
    head: [u8; HEAD],
    length: usize,
}

/// Bit of the first byte of a claim, beside its kind, that is set if the claim is raw.
const RAW: u8 = 1 << 7;
/// Bit of the same byte that is set if rows and stride follow.
const RECTANGLE: u8 = 1 << 6;

const FETCH_ADD: u8 = 0;
const COMPARE_SWAP: u8 = 1;

impl Writer {
    /// Begins a message with a byte.
    pub(super) fn new(first: u8) -> Self {
        let mut head = [0; HEAD];
        head[0] = first;
        Writer { head, length: 1 }
    }

    /// Writes bytes of a fixed number.
    pub(super) fn fixed<const N: usize>(&mut self, bytes: [u8; N]) {
        self.head[self.length..self.length + N].copy_from_slice(&bytes);
        self.length += N;
    }

    /// Writes numbers.
    pub(super) fn numbers<N: VarInt, const COUNT: usize>(&mut self, numbers: [N; COUNT]) {
        for number in numbers {
            self.length += number.encode_var(&mut self.head[self.length..]);
        }
    }

    /// Writes a claim, and the windows that it is for.
    pub(super) fn claim(&mut self, request: WindowRequest, claim: Claim) {
        self.request(request);
        self.elements(claim);
    }

    pub(super) fn request(&mut self, WindowRequest { target, lane, round }: WindowRequest) {
        self.fixed([lane.0]);
        self.numbers([target.0]);
        self.numbers([round.0]);
    }

    pub(super) fn remote(&mut self, RemoteAddress { address, key }: RemoteAddress) {
        self.numbers([address]);
        self.numbers([key.to_u32()]);
    }

    /// Writes the change of an atomic.
    pub(super) fn update(&mut self, update: WordUpdate) {
        match update {
            WordUpdate::FetchAdd { add } => {
                self.fixed([FETCH_ADD]);
                self.numbers([add]);
            }
            WordUpdate::CompareSwap { compare, swap } => {
                self.fixed([COMPARE_SWAP]);
                self.numbers([compare, swap]);
            }
        }
    }

    /// Writes a notification, and the claim of its put.
    pub(super) fn notified(&mut self, NotifiedClaim { notification, claim }: NotifiedClaim) {
        self.numbers([notification.id, notification.value]);
        self.elements(claim);
    }

    fn elements(&mut self, claim: Claim) {
        let Claim { source, slot, index, end, rows, stride, kind, raw } = claim;
        let is_rectangle = (rows, stride) != (1, 0);
        let bit = |bit, is_set| if is_set { bit } else { 0 };
        self.fixed([kind as u8 | bit(RAW, raw) | bit(RECTANGLE, is_rectangle)]);
        self.numbers([source.0, slot]);
        self.numbers([index, end.wrapping_sub(index)]);
        if is_rectangle {
            self.numbers([rows, stride]);
        }
    }

    /// Returns what was written.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.head[..self.length]
    }
}

/// The rest of a message that is being read.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    /// Reads bytes of a fixed number.
    pub(super) fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*chunk)
    }

    /// Reads what [`Writer::numbers`] has written.
    pub(super) fn number<N: VarInt>(&mut self) -> Option<N> {
        let (number, length) = N::decode_var(self.0)?;
        self.0 = self.0.get(length..)?;
        Some(number)
    }

    /// Reads what [`Writer::claim`] has written.
    pub(super) fn claim(&mut self) -> Option<(WindowRequest, Claim)> {
        Some((self.request()?, self.elements()?))
    }

    pub(super) fn request(&mut self) -> Option<WindowRequest> {
        let [lane] = self.fixed()?;
        let (target, round) = (Rank(self.number()?), Round(self.number()?));
        Some(WindowRequest { target, lane: LaneNumber(lane), round })
    }

    pub(super) fn remote(&mut self) -> Option<RemoteAddress> {
        let (address, key) = (self.number()?, RemoteKey::from_u32(self.number()?));
        Some(RemoteAddress { address, key })
    }

    pub(super) fn update(&mut self) -> Option<WordUpdate> {
        match self.fixed()? {
            [FETCH_ADD] => Some(WordUpdate::FetchAdd { add: self.number()? }),
            [COMPARE_SWAP] => {
                let (compare, swap) = (self.number()?, self.number()?);
                Some(WordUpdate::CompareSwap { compare, swap })
            }
            _ => None,
        }
    }

    /// Reads what [`Writer::notified`] has written.
    pub(super) fn notified(&mut self) -> Option<NotifiedClaim> {
        let (id, value, claim) = (self.number()?, self.number()?, self.elements()?);
        let source = claim.source;
        Some(NotifiedClaim { notification: Notification { source, id, value }, claim })
    }

    fn elements(&mut self) -> Option<Claim> {
        let [first] = self.fixed()?;
        let kind = *KINDS.get(usize::from(first & !(RAW | RECTANGLE)))?;
        let (source, slot) = (Rank(self.number()?), self.number()?);
        let (index, elements): (u64, u64) = (self.number()?, self.number()?);
        let (rows, stride) =
            if first & RECTANGLE == 0 { (1, 0) } else { (self.number()?, self.number()?) };
        let (raw, end) = (first & RAW != 0, index.wrapping_add(elements));
        Some(Claim { source, slot, index, end, rows, stride, kind, raw })
    }
}
