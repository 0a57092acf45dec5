//! Control messages come back from their bytes.

use super::super::encoding::KINDS;
use super::*;
use crate::notification::Notification;
use crate::numbers::{LaneNumber, Round};
use crate::window::Kind;
use ibverbs_sim::RemoteKey;
use proptest::prelude::*;

/// Bytes of a slot, less the header of a frame, the length of a packet, and its kind.
const FITS_SLOT: usize = 56 - 8 - 4 - 1;

proptest! {
    #[test]
    fn a_control_message_comes_back(
        kind in 0..25u8, number: u32, lane: u8, ranks: (u32, u32), slot: u32, rectangle: (u32, u32),
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
            TICKET => {
                let WindowRequest { lane, round, .. } = request;
                let ticket = TicketNumber(number);
                ControlMessage::Ticket(Ticket { number: ticket, lane, round, claim })
            }
            TICKET_RECALL => ControlMessage::TicketRecall { number: TicketNumber(number) },
            TICKET_RETURN => {
                let number = TicketNumber(number);
                ControlMessage::TicketReturn { number, has_asked: raw }
            }
            LEFT => ControlMessage::Left,
            ATOMIC => {
                let remote = RemoteAddress { address: round, key: RemoteKey::from_u32(slot) };
                let update = match raw {
                    true => WordUpdate::FetchAdd { add: index },
                    false => WordUpdate::CompareSwap { compare: index, swap: end },
                };
                ControlMessage::Atomic { number, request, claim, remote, update }
            }
            ATOMIC_RESULT => ControlMessage::AtomicResult { number, value: index },
            _ => ControlMessage::Finished,
        };
        let envelope = Envelope { source: Rank(slot), target: Rank(number) };
        let sent = [message.head(envelope).bytes(), message.data()].concat();
        prop_assert_eq!(ControlMessage::from_bytes(&sent), Some((envelope, message)));
    }

    /// The frame of the message then fits the slot of a ring of the rail `shm`.
    #[test]
    fn a_put_of_eight_bytes_is_short_in_a_run_that_is_long(
        ranks in (0..128u32, 0..128u32), slot in 0..128u32, index in 0..1u64 << 14,
        landed in 0..1u32 << 28, round in 0..1u64 << 28, address in 0..1u64 << 47, key: u32,
    ) {
        let (source, target) = (Rank(ranks.0), Rank(ranks.1));
        let request = WindowRequest { target, lane: LaneNumber(0), round: Round(round) };
        let (end, kind) = (index + 1, Kind::Write);
        let claim = Claim { source, slot, index, end, rows: 1, stride: 0, kind, raw: false };
        let remote = RemoteAddress { address, key: RemoteKey::from_u32(key) };
        let put = ControlMessage::Put { landed, request, claim, remote, bytes: &[7; 8] };
        let envelope = Envelope { source, target };
        prop_assert!(put.head(envelope).bytes().len() + put.data().len() <= FITS_SLOT);
    }

    #[test]
    fn no_bytes_are_too_strange(bytes: Vec<u8>) {
        let _ = ControlMessage::from_bytes(&bytes);
    }
}
