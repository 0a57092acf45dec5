//! Control messages between processes, and their encoding.
//!
//! The first byte is the kind. The numbers that follow have as many bytes as they need (LEB128), so that
//! a put of eight bytes fits into a slot of a ring in shared memory. Those of `Gather` and `Failed` are of
//! fixed length and little-endian, as processes of any version exchange their versions and fail by these.

use ibverbs_sim::{RemoteAddress, WordUpdate};
use talpf_traces::ClockReading;

use super::WindowRequest;
use super::encoding::{Reader, Writer};
use crate::notification::NotifiedClaim;
use crate::numbers::{ArrivalNumber, Rank, TicketNumber};
use crate::window::{Claim, Ticket};

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
    /// Carries an atomic with its claim.
    Atomic {
        number: u32,
        request: WindowRequest,
        claim: Claim,
        remote: RemoteAddress,
        update: WordUpdate,
    },
    /// Answers an atomic that was carried out with the value before it.
    AtomicResult { number: u32, value: u64 },
    /// Refuses an eager put: no window of the round covers it.
    PutRefusal { request: WindowRequest, claim: Claim },
    /// Reports the number of eager puts of the receiver that have landed, wrapping.
    Landed { landed: u32 },
    /// Lets the operation of a request land.
    WindowGrant { number: u32 },
    /// Refuses the operation of a request: no window of the round covers it.
    WindowRefusal { number: u32 },
    /// Lets a put of the receiver land that it has not asked for.
    Ticket(Ticket),
    /// Asks for a ticket that the receiver has not used.
    TicketRecall { number: TicketNumber },
    /// Gives back a ticket. `has_asked` if the sender had asked for its elements before it came.
    TicketReturn { number: TicketNumber, has_asked: bool },
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
    /// Reports that the sender needs nothing more. It only answers from then on.
    Finished,
    /// Reports that the sender knows that all have finished, or that the run has failed. It may end at any time.
    Left,
    /// Reports that the sender is idle, with its packet counts.
    Idle(&'a [u8]),
    /// Asks for the time of the receiver.
    ClockQuestion { number: u32 },
    /// Answers a question with the time of the sender.
    ClockAnswer { number: u32, time_ns: u64 },
    /// Gives the receiver a reading of the clock of the sender.
    ClockReading(ClockReading),
}

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
const TICKET: u8 = 19;
const TICKET_RECALL: u8 = 20;
const TICKET_RETURN: u8 = 21;
const LEFT: u8 = 22;
const ATOMIC: u8 = 23;
const ATOMIC_RESULT: u8 = 24;

impl<'a> ControlMessage<'a> {
    /// Returns what is sent before [the data](Self::data).
    pub(super) fn head(self, Envelope { source, target }: Envelope) -> Writer {
        let mut writer = Writer::new(self.kind());
        if has_fixed_numbers(self.kind()) {
            writer.fixed(source.0.to_le_bytes());
            writer.fixed(target.0.to_le_bytes());
        } else {
            writer.numbers([source.0, target.0]);
        }
        match self {
            ControlMessage::WindowRequest { number, request, claim } => {
                writer.numbers([number]);
                writer.claim(request, claim);
            }
            ControlMessage::Put { landed, request, claim, remote, .. } => {
                writer.numbers([landed]);
                writer.claim(request, claim);
                writer.remote(remote);
            }
            ControlMessage::Atomic { number, request, claim, remote, update } => {
                writer.numbers([number]);
                writer.claim(request, claim);
                writer.remote(remote);
                writer.update(update);
            }
            ControlMessage::AtomicResult { number, value } => {
                writer.numbers([number]);
                writer.numbers([value]);
            }
            ControlMessage::Puts { landed, request, .. } => {
                writer.numbers([landed]);
                writer.request(request);
            }
            ControlMessage::PutRefusal { request, claim } => {
                writer.claim(request, claim);
            }
            ControlMessage::InboxRequest { number, notified } => {
                writer.numbers([number]);
                writer.notified(notified);
            }
            ControlMessage::NotifiedPut { landed, notified, remote, .. } => {
                writer.numbers([landed]);
                writer.notified(notified);
                writer.remote(remote);
            }
            ControlMessage::InboxGrant { number, arrival } => {
                writer.numbers([number, arrival.0]);
            }
            ControlMessage::InboxRefusal { ids, notified } => {
                writer.numbers([ids]);
                writer.notified(notified);
            }
            ControlMessage::Ticket(Ticket { number, lane, round, claim }) => {
                writer.numbers([number.0]);
                writer.claim(WindowRequest { target: source, lane, round }, claim);
            }
            ControlMessage::TicketReturn { number, has_asked } => {
                writer.fixed([u8::from(has_asked)]);
                writer.numbers([number.0]);
            }
            ControlMessage::TicketRecall { number: TicketNumber(number) }
            | ControlMessage::Landed { landed: number }
            | ControlMessage::WindowGrant { number }
            | ControlMessage::WindowRefusal { number }
            | ControlMessage::ClockQuestion { number } => writer.numbers([number]),
            ControlMessage::Gather { number, .. } => writer.fixed(number.to_le_bytes()),
            ControlMessage::Failed { first, .. } => writer.fixed(first.0.to_le_bytes()),
            ControlMessage::Published { slot, name_bytes, .. } => {
                writer.numbers([slot, name_bytes]);
            }
            ControlMessage::ClockAnswer { number, time_ns } => {
                writer.numbers([number]);
                writer.numbers([time_ns]);
            }
            ControlMessage::ClockReading(ClockReading { here_ns, there_ns, error_ns }) => {
                writer.numbers([here_ns, there_ns, error_ns]);
            }
            ControlMessage::Idle(_) | ControlMessage::Finished | ControlMessage::Left => {}
        }
        writer
    }

    /// Returns `true` unless the message is about an operation between other ranks than its own.
    pub(super) fn is_between(&self, from: Rank, to: Rank) -> bool {
        match self {
            ControlMessage::WindowRequest { request, claim, .. }
            | ControlMessage::Atomic { request, claim, .. }
            | ControlMessage::Put { request, claim, .. } => {
                request.target == to && claim.source == from
            }
            ControlMessage::Puts { request, .. } => request.target == to,
            ControlMessage::PutRefusal { request, claim } => {
                request.target == from && claim.source == to
            }
            ControlMessage::Ticket(ticket) => ticket.claim.source == to,
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
            ControlMessage::Atomic { .. } => ATOMIC,
            ControlMessage::AtomicResult { .. } => ATOMIC_RESULT,
            ControlMessage::Puts { .. } => PUTS,
            ControlMessage::PutRefusal { .. } => PUT_REFUSAL,
            ControlMessage::Landed { .. } => LANDED,
            ControlMessage::WindowGrant { .. } => WINDOW_GRANT,
            ControlMessage::WindowRefusal { .. } => WINDOW_REFUSAL,
            ControlMessage::Gather { .. } => GATHER,
            ControlMessage::Failed { .. } => FAILED,
            ControlMessage::Finished => FINISHED,
            ControlMessage::Left => LEFT,
            ControlMessage::Idle(_) => IDLE,
            ControlMessage::InboxRequest { .. } => INBOX_REQUEST,
            ControlMessage::NotifiedPut { .. } => NOTIFIED_PUT,
            ControlMessage::InboxGrant { .. } => INBOX_GRANT,
            ControlMessage::InboxRefusal { .. } => INBOX_REFUSAL,
            ControlMessage::ClockQuestion { .. } => CLOCK_QUESTION,
            ControlMessage::ClockAnswer { .. } => CLOCK_ANSWER,
            ControlMessage::ClockReading(_) => CLOCK_READING,
            ControlMessage::Published { .. } => PUBLISHED,
            ControlMessage::Ticket(_) => TICKET,
            ControlMessage::TicketRecall { .. } => TICKET_RECALL,
            ControlMessage::TicketReturn { .. } => TICKET_RETURN,
        }
    }

    /// Returns the bytes that end the message, of any length.
    pub(super) fn data(&self) -> &'a [u8] {
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
        let (source, target) = if has_fixed_numbers(*kind) {
            (u32::from_le_bytes(reader.fixed()?), u32::from_le_bytes(reader.fixed()?))
        } else {
            (reader.number()?, reader.number()?)
        };
        let envelope = Envelope { source: Rank(source), target: Rank(target) };
        Some((envelope, Self::from_kind(*kind, reader)?))
    }

    fn from_kind(kind: u8, mut reader: Reader<'a>) -> Option<Self> {
        let message = match kind {
            WINDOW_REQUEST => {
                let number = reader.number()?;
                let (request, claim) = reader.claim()?;
                ControlMessage::WindowRequest { number, request, claim }
            }
            PUT => {
                let landed = reader.number()?;
                let (request, claim) = reader.claim()?;
                let (remote, bytes) = (reader.remote()?, reader.0);
                return Some(ControlMessage::Put { landed, request, claim, remote, bytes });
            }
            PUTS => {
                let (landed, request) = (reader.number()?, reader.request()?);
                return Some(ControlMessage::Puts { landed, request, puts: reader.0 });
            }
            PUT_REFUSAL => {
                let (request, claim) = reader.claim()?;
                ControlMessage::PutRefusal { request, claim }
            }
            ATOMIC => {
                let number = reader.number()?;
                let (request, claim) = reader.claim()?;
                let (remote, update) = (reader.remote()?, reader.update()?);
                ControlMessage::Atomic { number, request, claim, remote, update }
            }
            ATOMIC_RESULT => {
                let (number, value) = (reader.number()?, reader.number()?);
                ControlMessage::AtomicResult { number, value }
            }
            TICKET => {
                let number = TicketNumber(reader.number()?);
                let (WindowRequest { lane, round, .. }, claim) = reader.claim()?;
                ControlMessage::Ticket(Ticket { number, lane, round, claim })
            }
            TICKET_RECALL => {
                ControlMessage::TicketRecall { number: TicketNumber(reader.number()?) }
            }
            TICKET_RETURN => {
                let has_asked = match reader.fixed()? {
                    [0] => false,
                    [1] => true,
                    _ => return None,
                };
                let number = TicketNumber(reader.number()?);
                ControlMessage::TicketReturn { number, has_asked }
            }
            LANDED => ControlMessage::Landed { landed: reader.number()? },
            INBOX_REQUEST => {
                let (number, notified) = (reader.number()?, reader.notified()?);
                ControlMessage::InboxRequest { number, notified }
            }
            NOTIFIED_PUT => {
                let (landed, notified) = (reader.number()?, reader.notified()?);
                let (remote, bytes) = (reader.remote()?, reader.0);
                return Some(ControlMessage::NotifiedPut { landed, notified, remote, bytes });
            }
            INBOX_GRANT => {
                let (number, arrival) = (reader.number()?, ArrivalNumber(reader.number()?));
                ControlMessage::InboxGrant { number, arrival }
            }
            INBOX_REFUSAL => {
                let (ids, notified) = (reader.number()?, reader.notified()?);
                ControlMessage::InboxRefusal { ids, notified }
            }
            WINDOW_GRANT => ControlMessage::WindowGrant { number: reader.number()? },
            WINDOW_REFUSAL => ControlMessage::WindowRefusal { number: reader.number()? },
            IDLE => return Some(ControlMessage::Idle(reader.0)),
            GATHER => {
                let number = u64::from_le_bytes(reader.fixed()?);
                return Some(ControlMessage::Gather { number, part: reader.0 });
            }
            FAILED => {
                let first = Rank(u32::from_le_bytes(reader.fixed()?));
                return Some(ControlMessage::Failed {
                    first,
                    reason: std::str::from_utf8(reader.0).ok()?,
                });
            }
            PUBLISHED => {
                let (slot, name_bytes) = (reader.number()?, reader.number()?);
                let text = str::from_utf8(reader.0).ok()?;
                return Some(ControlMessage::Published { slot, name_bytes, text });
            }
            FINISHED => ControlMessage::Finished,
            LEFT => ControlMessage::Left,
            CLOCK_QUESTION => ControlMessage::ClockQuestion { number: reader.number()? },
            CLOCK_ANSWER => {
                let (number, time_ns) = (reader.number()?, reader.number()?);
                ControlMessage::ClockAnswer { number, time_ns }
            }
            CLOCK_READING => {
                let (here_ns, there_ns) = (reader.number()?, reader.number()?);
                let error_ns = reader.number()?;
                ControlMessage::ClockReading(ClockReading { here_ns, there_ns, error_ns })
            }
            _ => return None,
        };
        reader.0.is_empty().then_some(message)
    }
}

/// Returns `true` if the numbers of messages of a kind are of fixed length.
fn has_fixed_numbers(kind: u8) -> bool {
    matches!(kind, GATHER | FAILED)
}

#[cfg(all(test, not(talpf_loom)))]
mod tests;
