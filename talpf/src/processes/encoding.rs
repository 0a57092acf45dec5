//! Numbers, claims and notifications as control messages have them.
//!
//! Numbers have as many bytes as they need (LEB128).

use ibverbs_sim::{RemoteAddress, RemoteKey};
use integer_encoding::VarInt;

use super::WindowRequest;
use crate::notification::{Notification, NotifiedClaim};
use crate::numbers::{LaneNumber, Rank, Round};
use crate::window::{Claim, Kind};

/// The kinds of claims, by their numbers in messages.
pub(super) const KINDS: [Kind; 3] = [Kind::Read, Kind::Update, Kind::Write];

/// Most bytes of a number.
const MAX_NUMBER_BYTES: usize = 10;

/// Writes numbers.
pub(super) fn write_numbers<N: VarInt, const COUNT: usize>(
    bytes: &mut Vec<u8>,
    numbers: [N; COUNT],
) {
    for number in numbers {
        let mut encoded = [0; MAX_NUMBER_BYTES];
        let length = number.encode_var(&mut encoded);
        bytes.extend_from_slice(&encoded[..length]);
    }
}

/// Writes a claim, and the windows that it is for.
pub(super) fn write_claim(bytes: &mut Vec<u8>, request: WindowRequest, claim: Claim) {
    write_request(bytes, request);
    write_elements(bytes, claim);
}

pub(super) fn write_request(bytes: &mut Vec<u8>, request: WindowRequest) {
    let WindowRequest { target, lane, round } = request;
    bytes.push(lane.0);
    write_numbers(bytes, [target.0]);
    write_numbers(bytes, [round.0]);
}

pub(super) fn write_remote(bytes: &mut Vec<u8>, remote: RemoteAddress) {
    write_numbers(bytes, [remote.address]);
    write_numbers(bytes, [remote.key.to_u32()]);
}

/// Writes a notification, and the claim of its put.
pub(super) fn write_notified(bytes: &mut Vec<u8>, notified: NotifiedClaim) {
    let NotifiedClaim { notification: Notification { id, value, .. }, claim } = notified;
    write_numbers(bytes, [id, value]);
    write_elements(bytes, claim);
}

/// Bit of the first byte of a claim, beside its kind, that is set if the claim is raw.
const RAW: u8 = 1 << 7;
/// Bit of the same byte that is set if rows and stride follow.
const RECTANGLE: u8 = 1 << 6;

fn write_elements(bytes: &mut Vec<u8>, claim: Claim) {
    let Claim { source, slot, index, end, rows, stride, kind, raw } = claim;
    let is_rectangle = (rows, stride) != (1, 0);
    let bit = |bit, is_set| if is_set { bit } else { 0 };
    bytes.push(kind as u8 | bit(RAW, raw) | bit(RECTANGLE, is_rectangle));
    write_numbers(bytes, [source.0, slot]);
    write_numbers(bytes, [index, end.wrapping_sub(index)]);
    if is_rectangle {
        write_numbers(bytes, [rows, stride]);
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

    /// Reads what [`write_numbers`] has written.
    pub(super) fn number<N: VarInt>(&mut self) -> Option<N> {
        let (number, length) = N::decode_var(self.0)?;
        self.0 = self.0.get(length..)?;
        Some(number)
    }

    /// Reads what [`write_claim`] has written.
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

    /// Reads what [`write_notified`] has written.
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
