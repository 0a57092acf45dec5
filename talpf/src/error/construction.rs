//! Construction of errors from what the crate knows of their causes.

use super::Error;
use crate::notification::{Notification, NotifiedClaim};
use crate::numbers::{LaneNumber, Rank, Round};
use crate::window::Claim;

impl Error {
    pub(crate) fn outside_window(
        claim: &Claim,
        target: Rank,
        lane: LaneNumber,
        round: Round,
    ) -> Self {
        let Claim { source: source_rank, slot, kind, .. } = *claim;
        let (does, elements) = (kind.verb(), claim.elements());
        Error::OutsideWindow { source_rank, does, target, lane, round, slot, elements }
    }

    /// Returns the error of a notification that `target`, which has `ids` ids, does not take.
    pub(crate) fn outside_inbox(notified: &NotifiedClaim, target: Rank, ids: u32) -> Self {
        let NotifiedClaim { notification: Notification { source, id, .. }, claim } = notified;
        if *id >= ids {
            return Error::NoSuchNotification { rank: target, id: *id, ids };
        }
        let (source_rank, slot, elements) = (*source, claim.slot, claim.elements());
        Error::OutsideInbox { source_rank, target, id: *id, slot, elements }
    }

    /// Checks that a rank which is `ahead` of the other is not too far ahead.
    pub(crate) fn check_ahead(
        lane: LaneNumber,
        (rank, ahead): (Rank, Round),
        (peer, behind): (Rank, Round),
        limit: u64,
    ) -> Result<(), Self> {
        if ahead.0 < behind.0.saturating_add(limit) {
            return Ok(());
        }
        Err(Error::TooFarAhead { lane, rank, ahead, peer, behind, limit })
    }

    /// Returns the ranks to which `rank` reports this error, itself first.
    pub(crate) fn ranks(&self, rank: Rank) -> Vec<Rank> {
        match *self {
            Error::Conflict { reader, writer, .. } => vec![rank, reader, writer],
            Error::TooFarAhead { rank: ahead, .. } => vec![rank, ahead],
            _ => vec![rank],
        }
    }

    /// Makes the error of two claims in conflict, given in the order of their kinds.
    pub(crate) fn conflict(
        claims: [Claim; 2],
        target: Rank,
        lane: LaneNumber,
        round: Round,
    ) -> Self {
        let [(reader, reads), (writer, writes)] =
            claims.each_ref().map(|claim| (claim.source, claim.kind.verb()));
        let [one, other] = claims;
        let (index, end) = (one.index.max(other.index), one.end.min(other.end));
        let slot = one.slot;
        Error::Conflict { lane, round, reader, reads, writer, writes, target, slot, index, end }
    }
}
