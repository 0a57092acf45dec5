//! Control messages between processes, and their encoding.
//!
//! Numbers are little-endian; the first byte is the kind.

use ibverbs_sim::{RemoteAddress, RemoteKey};
use talpf_traces::ClockReading;

use super::WindowRequest;
use crate::notification::{Notification, NotifiedClaim};
use crate::numbers::{ArrivalNumber, LaneNumber, Rank, Round};
use crate::window::{Claim, Kind};

/// Ranks between which a control message goes. What concerns whole processes goes between their first
/// ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) source: Rank,
    pub(super) target: Rank,
}

/// A control message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ControlMessage<'a> {
    /// Asks the windows of the receiver to let an operation land.
    WindowRequest { number: u32, request: WindowRequest, claim: Claim },
    /// Carries a put with its claim. `landed` counts the eager puts of the receiver that have
    /// landed at the sender, wrapping.
    Put {
        landed: u32,
        request: WindowRequest,
        claim: Claim,
        remote: RemoteAddress,
        bytes: &'a [u8],
    },
    /// Carries puts of one round with their claims, as a [`PutList`](super::put_list::PutList).
    /// `landed` as in `Put`.
    Puts { landed: u32, request: WindowRequest, puts: &'a [u8] },
    /// Refuses an eager put: no window of the round covers it.
    PutRefusal { request: WindowRequest, claim: Claim },
    /// Reports the number of eager puts of the receiver that have landed, wrapping.
    Landed { landed: u32 },
    /// Lets the operation of a request land.
    WindowGrant { number: u32 },
    /// Refuses the operation of a request: no window of the round covers it.
    WindowRefusal { number: u32 },
    /// Asks the notifications of the receiver to let an operation land.
    InboxRequest { number: u32, notified: NotifiedClaim },
    /// Carries a notification with its put, if it has one. `landed` as in `Put`.
    NotifiedPut { landed: u32, notified: NotifiedClaim, remote: RemoteAddress, bytes: &'a [u8] },
    /// Lets the operation of an inbox request land, under an arrival number.
    InboxGrant { number: u32, arrival: ArrivalNumber },
    /// Refuses a notification: the sender has `ids` ids, or no inbox that covers the put.
    InboxRefusal { ids: u32, notified: NotifiedClaim },
    /// Carries the part of the sender in a collective call.
    Gather { number: u64, part: &'a [u8] },
    /// Names a slot of the sender for all ranks. `text` is the name, of so many bytes, and the type of
    /// the elements.
    Published { slot: u32, name_bytes: u32, text: &'a str },
    /// Reports the failure of the run.
    Failed { first: Rank, reason: &'a str },
    /// Ends the messages of the sender, which needs nothing more.
    Finished,
    /// Reports that the sender is idle, with its packet counts.
    Idle(&'a [u8]),
    /// Asks for the time of the receiver.
    ClockQuestion { number: u32 },
    /// Answers a question with the time of the sender.
    ClockAnswer { number: u32, time_ns: u64 },
    /// Gives the receiver a reading of the clock of the sender.
    ClockReading(ClockReading),
}

/// The kinds of claims, by their numbers in messages.
const KINDS: [Kind; 3] = [Kind::Read, Kind::Update, Kind::Write];

const WINDOW_REQUEST: u8 = 0;
const WINDOW_GRANT: u8 = 1;
const WINDOW_REFUSAL: u8 = 2;
const GATHER: u8 = 3;
const FAILED: u8 = 4;
const FINISHED: u8 = 5;
const IDLE: u8 = 6;
const PUT: u8 = 7;
const PUT_REFUSAL: u8 = 8;
const LANDED: u8 = 9;
const INBOX_REQUEST: u8 = 10;
const NOTIFIED_PUT: u8 = 11;
const INBOX_GRANT: u8 = 12;
const INBOX_REFUSAL: u8 = 13;
const CLOCK_QUESTION: u8 = 14;
const CLOCK_ANSWER: u8 = 15;
const CLOCK_READING: u8 = 16;
const PUBLISHED: u8 = 17;
const PUTS: u8 = 18;

/// Most bytes of a message without the data that it carries.
const HEAD: usize = 88;

impl<'a> ControlMessage<'a> {
    pub(super) fn to_bytes(self, Envelope { source, target }: Envelope) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.data().len());
        bytes.push(self.kind());
        bytes.extend(source.0.to_le_bytes());
        bytes.extend(target.0.to_le_bytes());
        match self {
            ControlMessage::WindowRequest { number, request, claim } => {
                bytes.extend(number.to_le_bytes());
                write_claim(&mut bytes, request, claim);
            }
            ControlMessage::Put { landed, request, claim, remote, .. } => {
                bytes.extend(landed.to_le_bytes());
                write_claim(&mut bytes, request, claim);
                bytes.extend(remote.address.to_le_bytes());
                bytes.extend(remote.key.to_u32().to_le_bytes());
            }
            ControlMessage::Puts { landed, request, .. } => {
                bytes.extend(landed.to_le_bytes());
                write_request(&mut bytes, request);
            }
            ControlMessage::PutRefusal { request, claim } => {
                write_claim(&mut bytes, request, claim);
            }
            ControlMessage::InboxRequest { number, notified } => {
                bytes.extend(number.to_le_bytes());
                write_notified(&mut bytes, notified);
            }
            ControlMessage::NotifiedPut { landed, notified, remote, .. } => {
                bytes.extend(landed.to_le_bytes());
                write_notified(&mut bytes, notified);
                bytes.extend(remote.address.to_le_bytes());
                bytes.extend(remote.key.to_u32().to_le_bytes());
            }
            ControlMessage::InboxGrant { number, arrival } => {
                bytes.extend(number.to_le_bytes());
                bytes.extend(arrival.0.to_le_bytes());
            }
            ControlMessage::InboxRefusal { ids, notified } => {
                bytes.extend(ids.to_le_bytes());
                write_notified(&mut bytes, notified);
            }
            ControlMessage::Landed { landed: number }
            | ControlMessage::WindowGrant { number }
            | ControlMessage::WindowRefusal { number }
            | ControlMessage::ClockQuestion { number }
            | ControlMessage::Failed { first: Rank(number), .. } => {
                bytes.extend(number.to_le_bytes());
            }
            ControlMessage::Gather { number, .. } => bytes.extend(number.to_le_bytes()),
            ControlMessage::Published { slot, name_bytes, .. } => {
                bytes.extend(slot.to_le_bytes());
                bytes.extend(name_bytes.to_le_bytes());
            }
            ControlMessage::ClockAnswer { number, time_ns } => {
                bytes.extend(number.to_le_bytes());
                bytes.extend(time_ns.to_le_bytes());
            }
            ControlMessage::ClockReading(ClockReading { here_ns, there_ns, error_ns }) => {
                let times = [here_ns, there_ns, error_ns];
                bytes.extend(times.into_iter().flat_map(u64::to_le_bytes));
            }
            ControlMessage::Idle(_) | ControlMessage::Finished => {}
        }
        bytes.extend(self.data());
        bytes
    }

    /// Returns `true` unless the message is about an operation between other ranks than its own.
    pub(super) fn is_between(&self, from: Rank, to: Rank) -> bool {
        match self {
            ControlMessage::WindowRequest { request, claim, .. }
            | ControlMessage::Put { request, claim, .. } => {
                request.target == to && claim.source == from
            }
            ControlMessage::Puts { request, .. } => request.target == to,
            ControlMessage::PutRefusal { request, claim } => {
                request.target == from && claim.source == to
            }
            ControlMessage::InboxRequest { notified, .. }
            | ControlMessage::NotifiedPut { notified, .. } => notified.claim.source == from,
            ControlMessage::InboxRefusal { notified, .. } => notified.claim.source == to,
            _ => true,
        }
    }

    fn kind(self) -> u8 {
        match self {
            ControlMessage::WindowRequest { .. } => WINDOW_REQUEST,
            ControlMessage::Put { .. } => PUT,
            ControlMessage::Puts { .. } => PUTS,
            ControlMessage::PutRefusal { .. } => PUT_REFUSAL,
            ControlMessage::Landed { .. } => LANDED,
            ControlMessage::WindowGrant { .. } => WINDOW_GRANT,
            ControlMessage::WindowRefusal { .. } => WINDOW_REFUSAL,
            ControlMessage::Gather { .. } => GATHER,
            ControlMessage::Failed { .. } => FAILED,
            ControlMessage::Finished => FINISHED,
            ControlMessage::Idle(_) => IDLE,
            ControlMessage::InboxRequest { .. } => INBOX_REQUEST,
            ControlMessage::NotifiedPut { .. } => NOTIFIED_PUT,
            ControlMessage::InboxGrant { .. } => INBOX_GRANT,
            ControlMessage::InboxRefusal { .. } => INBOX_REFUSAL,
            ControlMessage::ClockQuestion { .. } => CLOCK_QUESTION,
            ControlMessage::ClockAnswer { .. } => CLOCK_ANSWER,
            ControlMessage::ClockReading(_) => CLOCK_READING,
            ControlMessage::Published { .. } => PUBLISHED,
        }
    }

    /// Returns the bytes that end the message, of any length.
    fn data(&self) -> &'a [u8] {
        match *self {
            ControlMessage::Put { bytes, .. } | ControlMessage::NotifiedPut { bytes, .. } => bytes,
            ControlMessage::Puts { puts, .. } => puts,
            ControlMessage::Gather { part, .. } => part,
            ControlMessage::Failed { reason: text, .. }
            | ControlMessage::Published { text, .. } => text.as_bytes(),
            ControlMessage::Idle(traffic) => traffic,
            _ => &[],
        }
    }

    /// Decodes a message. `None` if the bytes are not one.
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Option<(Envelope, Self)> {
        let (kind, rest) = bytes.split_first()?;
        let mut reader = Reader(rest);
        let envelope = Envelope { source: Rank(reader.word()?), target: Rank(reader.word()?) };
        Some((envelope, Self::from_kind(*kind, reader)?))
    }

    fn from_kind(kind: u8, mut reader: Reader<'a>) -> Option<Self> {
        let message = match kind {
            WINDOW_REQUEST => {
                let number = reader.word()?;
                let (request, claim) = reader.claim()?;
                ControlMessage::WindowRequest { number, request, claim }
            }
            PUT => {
                let landed = reader.word()?;
                let (request, claim) = reader.claim()?;
                let (address, key) = (reader.long()?, RemoteKey::from_u32(reader.word()?));
                let remote = RemoteAddress { address, key };
                let bytes = reader.0;
                return Some(ControlMessage::Put { landed, request, claim, remote, bytes });
            }
            PUTS => {
                let (landed, request) = (reader.word()?, reader.request()?);
                return Some(ControlMessage::Puts { landed, request, puts: reader.0 });
            }
            PUT_REFUSAL => {
                let (request, claim) = reader.claim()?;
                ControlMessage::PutRefusal { request, claim }
            }
            LANDED => ControlMessage::Landed { landed: reader.word()? },
            INBOX_REQUEST => {
                let (number, notified) = (reader.word()?, reader.notified()?);
                ControlMessage::InboxRequest { number, notified }
            }
            NOTIFIED_PUT => {
                let (landed, notified) = (reader.word()?, reader.notified()?);
                let (address, key) = (reader.long()?, RemoteKey::from_u32(reader.word()?));
                let (remote, bytes) = (RemoteAddress { address, key }, reader.0);
                return Some(ControlMessage::NotifiedPut { landed, notified, remote, bytes });
            }
            INBOX_GRANT => {
                let (number, arrival) = (reader.word()?, ArrivalNumber(reader.word()?));
                ControlMessage::InboxGrant { number, arrival }
            }
            INBOX_REFUSAL => {
                let (ids, notified) = (reader.word()?, reader.notified()?);
                ControlMessage::InboxRefusal { ids, notified }
            }
            WINDOW_GRANT => ControlMessage::WindowGrant { number: reader.word()? },
            WINDOW_REFUSAL => ControlMessage::WindowRefusal { number: reader.word()? },
            GATHER => {
                let number = reader.long()?;
                return Some(ControlMessage::Gather { number, part: reader.0 });
            }
            IDLE => return Some(ControlMessage::Idle(reader.0)),
            FAILED => {
                let first = Rank(reader.word()?);
                return Some(ControlMessage::Failed {
                    first,
                    reason: std::str::from_utf8(reader.0).ok()?,
                });
            }
            PUBLISHED => {
                let (slot, name_bytes) = (reader.word()?, reader.word()?);
                let text = str::from_utf8(reader.0).ok()?;
                return Some(ControlMessage::Published { slot, name_bytes, text });
            }
            FINISHED => ControlMessage::Finished,
            CLOCK_QUESTION => ControlMessage::ClockQuestion { number: reader.word()? },
            CLOCK_ANSWER => {
                let (number, time_ns) = (reader.word()?, reader.long()?);
                ControlMessage::ClockAnswer { number, time_ns }
            }
            CLOCK_READING => {
                let (here_ns, there_ns) = (reader.long()?, reader.long()?);
                let error_ns = reader.long()?;
                ControlMessage::ClockReading(ClockReading { here_ns, there_ns, error_ns })
            }
            _ => return None,
        };
        reader.0.is_empty().then_some(message)
    }
}

/// Writes a claim, and the windows that it is for.
fn write_claim(bytes: &mut Vec<u8>, request: WindowRequest, claim: Claim) {
    write_request(bytes, request);
    write_elements(bytes, claim);
}

fn write_request(bytes: &mut Vec<u8>, request: WindowRequest) {
    let WindowRequest { target, lane, round } = request;
    bytes.push(lane.0);
    bytes.extend(target.0.to_le_bytes());
    bytes.extend(round.0.to_le_bytes());
}

/// Writes a notification, and the claim of its put.
fn write_notified(bytes: &mut Vec<u8>, notified: NotifiedClaim) {
    let NotifiedClaim { notification: Notification { id, value, .. }, claim } = notified;
    bytes.extend(id.to_le_bytes());
    bytes.extend(value.to_le_bytes());
    write_elements(bytes, claim);
}

fn write_elements(bytes: &mut Vec<u8>, claim: Claim) {
    bytes.extend([claim.kind as u8, u8::from(claim.raw)]);
    bytes.extend(claim.source.0.to_le_bytes());
    bytes.extend(claim.slot.to_le_bytes());
    bytes.extend(claim.index.to_le_bytes());
    bytes.extend(claim.end.to_le_bytes());
    bytes.extend(claim.rows.to_le_bytes());
    bytes.extend(claim.stride.to_le_bytes());
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*chunk)
    }

    /// Reads what [`write_claim`] has written.
    fn claim(&mut self) -> Option<(WindowRequest, Claim)> {
        Some((self.request()?, self.elements()?))
    }

    fn request(&mut self) -> Option<WindowRequest> {
        let lane = LaneNumber(self.byte()?);
        let (target, round) = (Rank(self.word()?), Round(self.long()?));
        Some(WindowRequest { target, lane, round })
    }

    /// Reads what [`write_notified`] has written.
    fn notified(&mut self) -> Option<NotifiedClaim> {
        let (id, value, claim) = (self.word()?, self.word()?, self.elements()?);
        let source = claim.source;
        Some(NotifiedClaim { notification: Notification { source, id, value }, claim })
    }

    fn elements(&mut self) -> Option<Claim> {
        let kind = *KINDS.get(usize::from(self.byte()?))?;
        let raw = self.byte()? != 0;
        let (source, slot) = (Rank(self.word()?), self.word()?);
        let (index, end) = (self.long()?, self.long()?);
        let (rows, stride) = (self.word()?, self.word()?);
        Some(Claim { source, slot, index, end, rows, stride, kind, raw })
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
        fn a_control_message_comes_back(
            kind in 0..19u8, number: u32, lane: u8, ranks: (u32, u32), slot: u32, rectangle: (u32, u32),
            longs: (u64, u64, u64), access in 0..3usize, raw: bool, given: Vec<u8>, reason: String,
        ) {
            let (round, index, end) = longs;
            let request = WindowRequest { target: Rank(ranks.0), lane: LaneNumber(lane), round: Round(round) };
            let (source, (rows, stride), kind_of_claim) = (Rank(ranks.1), rectangle, KINDS[access]);
            let claim = Claim { source, slot, index, end, rows, stride, kind: kind_of_claim, raw };
            let notification = Notification { source, id: slot, value: number };
            let notified = NotifiedClaim { notification, claim };
            let message = match kind {
                WINDOW_REQUEST => ControlMessage::WindowRequest { number, request, claim },
                WINDOW_GRANT => ControlMessage::WindowGrant { number },
                WINDOW_REFUSAL => ControlMessage::WindowRefusal { number },
                GATHER => ControlMessage::Gather { number: round, part: &given },
                IDLE => ControlMessage::Idle(&given),
                FAILED => ControlMessage::Failed { first: Rank(number), reason: &reason },
                PUBLISHED => {
                    ControlMessage::Published { slot, name_bytes: number, text: &reason }
                }
                PUT => {
                    let remote = RemoteAddress { address: round, key: RemoteKey::from_u32(slot) };
                    ControlMessage::Put { landed: number, request, claim, remote, bytes: &given }
                }
                PUTS => ControlMessage::Puts { landed: number, request, puts: &given },
                PUT_REFUSAL => ControlMessage::PutRefusal { request, claim },
                LANDED => ControlMessage::Landed { landed: number },
                INBOX_REQUEST => ControlMessage::InboxRequest { number, notified },
                NOTIFIED_PUT => {
                    let remote = RemoteAddress { address: round, key: RemoteKey::from_u32(slot) };
                    ControlMessage::NotifiedPut { landed: number, notified, remote, bytes: &given }
                }
                INBOX_GRANT => ControlMessage::InboxGrant { number, arrival: ArrivalNumber(slot) },
                INBOX_REFUSAL => ControlMessage::InboxRefusal { ids: number, notified },
                CLOCK_QUESTION => ControlMessage::ClockQuestion { number },
                CLOCK_ANSWER => ControlMessage::ClockAnswer { number, time_ns: round },
                CLOCK_READING => {
                    let (here_ns, there_ns, error_ns) = longs;
                    ControlMessage::ClockReading(ClockReading { here_ns, there_ns, error_ns })
                }
                _ => ControlMessage::Finished,
            };
            let envelope = Envelope { source: Rank(slot), target: Rank(number) };
            let sent = message.to_bytes(envelope);
            prop_assert!(sent.len() <= HEAD + message.data().len());
            prop_assert_eq!(ControlMessage::from_bytes(&sent), Some((envelope, message)));
        }

        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>) {
            let _ = ControlMessage::from_bytes(&bytes);
        }
    }
}
