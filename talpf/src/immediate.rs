//! The immediate of an operation, 32 bits with its kind, lane and round.
//!
//! The round is sent modulo 2^21 and completed at the receiver with the nearest round it knows.
//! Control messages carry eight bytes as well: a count, and the rest of the round.

use crate::numbers::{ArrivalNumber, LaneNumber, Rank, Round, TicketNumber};

const ROUND_BITS: u32 = 21;
const LANE_BITS: u32 = 8;
const ROUNDS: u64 = 1 << ROUND_BITS;

/// Lowest bit of the number of eager puts.
const PUTS_BIT: u32 = 24;
/// Most eager puts that are counted at once.
pub(crate) const MOST_COUNTED: u32 = (1 << 7) - 1;

/// The eager puts that a message counts, or an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EagerArrival {
    pub(crate) source: Rank,
    /// Number of the puts, [`MOST_COUNTED`] at most; 0 for an atomic.
    pub(crate) puts: u32,
}

impl EagerArrival {
    pub(crate) fn of_atomic(source: Rank) -> Self {
        EagerArrival { source, puts: 0 }
    }

    pub(crate) fn is_atomic(self) -> bool {
        self.puts == 0
    }

    #[inline]
    pub(crate) fn to_bits(self) -> u32 {
        self.source.0 | self.puts << PUTS_BIT
    }

    #[inline]
    pub(crate) fn from_bits(bits: u32) -> Self {
        let source = Rank(bits & ((1 << PUTS_BIT) - 1));
        EagerArrival { source, puts: bits >> PUTS_BIT & MOST_COUNTED }
    }
}

/// Number of ticket numbers, which fit beside the kind.
pub(crate) const TICKET_NUMBERS: u32 = 1 << (ROUND_BITS + LANE_BITS);

/// The kind of an operation that a completion with an immediate announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A put that has landed, a get that has read, or an atomic that was done.
    Data,
    /// Number of operations that the sender has for the receiver in this round. Also the message of
    /// a step of the exchange of counts, if the two ranks have such a step.
    Count,
    /// A step of a barrier, which follows from the ranks.
    Barrier,
    /// The acknowledgement that the sender has ended this round.
    Ack,
    /// As `Data`, of an operation that a remote target has granted.
    Granted,
    /// Puts or an atomic that have travelled with their claims: from the target to itself, with an
    /// [`EagerArrival`] in place of the count.
    Eager,
    /// An operation outside rounds, with its arrival number in place of lane and round.
    Notified,
    /// A put that a ticket has let land, with the number of the ticket in place of lane and round.
    Ticket,
}

/// The fields of an immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Immediate {
    pub(crate) kind: Kind,
    pub(crate) lane: LaneNumber,
    /// Round modulo 2^21.
    round: u32,
}

impl Immediate {
    #[inline]
    pub(crate) fn new(kind: Kind, lane: LaneNumber, round: Round) -> Self {
        Immediate { kind, lane, round: (round.0 % ROUNDS) as u32 }
    }

    #[inline]
    pub(crate) fn to_bits(self) -> u32 {
        (self.kind as u32) << (ROUND_BITS + LANE_BITS)
            | u32::from(self.lane.0) << ROUND_BITS
            | self.round
    }

    #[inline]
    pub(crate) fn from_bits(bits: u32) -> Self {
        let kind = match bits >> (ROUND_BITS + LANE_BITS) {
            0 => Kind::Data,
            1 => Kind::Count,
            2 => Kind::Barrier,
            3 => Kind::Ack,
            4 => Kind::Granted,
            5 => Kind::Eager,
            6 => Kind::Notified,
            _ => Kind::Ticket,
        };
        let lane = LaneNumber((bits >> ROUND_BITS) as u8);
        Immediate { kind, lane, round: bits & (ROUNDS as u32 - 1) }
    }

    /// Returns the bits of the immediate of an operation outside rounds.
    #[inline]
    pub(crate) fn notified(number: ArrivalNumber) -> u32 {
        (Kind::Notified as u32) << (ROUND_BITS + LANE_BITS) | number.0
    }

    /// Returns the arrival number of an operation outside rounds.
    #[inline]
    pub(crate) fn arrival_number(self) -> ArrivalNumber {
        ArrivalNumber(self.number())
    }

    /// Returns the bits of the immediate of a put by a ticket.
    #[inline]
    pub(crate) fn by_ticket(number: TicketNumber) -> u32 {
        (Kind::Ticket as u32) << (ROUND_BITS + LANE_BITS) | number.0
    }

    /// Returns the number of the ticket of a put.
    #[inline]
    pub(crate) fn ticket_number(self) -> TicketNumber {
        TicketNumber(self.number())
    }

    /// Returns the number in place of lane and round.
    #[inline]
    fn number(self) -> u32 {
        u32::from(self.lane.0) << ROUND_BITS | self.round
    }

    /// Returns the eight bytes of a control message of `round`.
    #[inline]
    pub(crate) fn payload(round: Round, count: u32) -> u64 {
        round.0 >> ROUND_BITS << u32::BITS | u64::from(count)
    }

    /// Returns the round of a control message, and its count.
    #[inline]
    pub(crate) fn with_payload(self, payload: u64) -> (Round, u32) {
        let round = payload >> u32::BITS << ROUND_BITS | u64::from(self.round);
        (Round(round), payload as u32)
    }

    /// Returns the round, given one that is less than 2^20 rounds away.
    #[inline]
    pub(crate) fn round_near(self, known: Round) -> Round {
        let ahead = u64::from(self.round).wrapping_sub(known.0) % ROUNDS;
        if ahead < ROUNDS / 2 {
            Round(known.0 + ahead)
        } else {
            Round((known.0 + ahead).saturating_sub(ROUNDS))
        }
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_immediate_comes_back(kind in 0..6u32, lane in any::<u8>(), known in 0..1u64 << 40, distance in -1_000_000i64..1_000_000) {
            let kind = [Kind::Data, Kind::Count, Kind::Barrier, Kind::Ack, Kind::Granted, Kind::Eager][kind as usize];
            let round = Round(known.saturating_add_signed(distance));
            let sent = Immediate::new(kind, LaneNumber(lane), round);
            let received = Immediate::from_bits(sent.to_bits());
            prop_assert_eq!(received, sent);
            prop_assert_eq!(received.round_near(Round(known)), round);
        }

        #[test]
        fn an_arrival_number_comes_back(number in 0..1u32 << 29) {
            let received = Immediate::from_bits(Immediate::notified(ArrivalNumber(number)));
            prop_assert_eq!(received.kind, Kind::Notified);
            prop_assert_eq!(received.arrival_number(), ArrivalNumber(number));
        }

        #[test]
        fn a_ticket_number_comes_back(number in 0..TICKET_NUMBERS) {
            let received = Immediate::from_bits(Immediate::by_ticket(TicketNumber(number)));
            prop_assert_eq!(received.kind, Kind::Ticket);
            prop_assert_eq!(received.ticket_number(), TicketNumber(number));
        }

        #[test]
        fn an_eager_arrival_comes_back(
            source in 0..1u32 << PUTS_BIT, puts in 0..=MOST_COUNTED,
        ) {
            let sent = EagerArrival { source: Rank(source), puts };
            prop_assert_eq!(EagerArrival::from_bits(sent.to_bits()), sent);
        }

        #[test]
        fn a_control_message_says_which_round_it_is_of_wherever_that_is(
            round in 0..1u64 << 53, count: u32,
        ) {
            let sent = Immediate::new(Kind::Barrier, LaneNumber(3), Round(round));
            let payload = Immediate::payload(Round(round), count);
            prop_assert_eq!(sent.with_payload(payload), (Round(round), count));
        }
    }
}
