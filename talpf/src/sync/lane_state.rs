//! The syncs and arrivals of one lane, and its cached pattern.

use std::collections::VecDeque;

use super::active_sync::{ActiveSync, Stage};
use super::arrivals::{LaneArrivals, RoundArrivals};
use super::{Arrivals, SyncMode};
use crate::error::Error;
use crate::numbers::Rank;

/// The syncs and arrivals of one lane.
pub(super) struct LaneState {
    pub(super) arrivals: LaneArrivals,
    /// Syncs in the order of their rounds.
    pub(super) syncs: VecDeque<ActiveSync>,
    pub(super) pattern: Option<Pattern>,
    /// Number of targets of the round that ended last, if it ended with acknowledgements.
    pub(super) unacknowledged: u32,
}

/// The cached pattern of a lane: operations by target and by source.
pub(super) struct Pattern {
    /// Targets of operations, and numbers of these.
    pub(super) sent: Vec<(Rank, u32)>,
    pub(super) expected: Vec<u32>,
}

impl LaneState {
    /// Takes the first sync, unless nothing has changed for it.
    #[inline]
    pub(super) fn take_ready(&mut self, has_failed: bool) -> Option<ActiveSync> {
        let sync = self.syncs.front()?;
        let unchanged = match sync.stage {
            Stage::Posting => !sync.round.is_posted(),
            Stage::Arriving => {
                let round = self.arrivals.round(sync.round.number);
                round.is_some_and(|round| round.total < sync.expected)
            }
            _ => false,
        };
        if unchanged && !has_failed { None } else { self.syncs.pop_front() }
    }

    /// Returns the number of arrivals of a round, if known before its sync.
    pub(super) fn known(&self, mode: SyncMode) -> Option<u32> {
        match mode.arrivals {
            Arrivals::Msg(arrivals) => Some(arrivals),
            Arrivals::Cached => self.pattern.as_ref().map(|pattern| pattern.expected.iter().sum()),
            Arrivals::Default => None,
        }
    }

    /// Returns the number of arrivals of a round under `Cached`.
    ///
    /// **Errors**: the round differs from the cached pattern.
    pub(super) fn recall(&self, sync: &ActiveSync) -> Result<u32, Error> {
        let Some(pattern) = &self.pattern else {
            return Ok(0);
        };
        let round = &sync.round;
        let before =
            |target| pattern.sent.iter().find(|(of, _)| *of == target).map_or(0, |of| of.1);
        let changed = if round.sent().eq(pattern.sent.iter().copied()) {
            None
        } else {
            let targets =
                pattern.sent.iter().copied().chain(round.sent()).map(|(target, _)| target);
            targets.filter(|&target| before(target) != round.sent_to(target)).min()
        };
        match changed {
            Some(target) => Err(Error::PatternChanged {
                lane: round.lane,
                round: round.number,
                target,
                sent: round.sent_to(target),
                expected: before(target),
            }),
            None => Ok(pattern.expected.iter().sum()),
        }
    }
}

/// Returns the number of operations expected from a rank, after the exchange of counts if any.
/// `None` under `Msg`, which knows the sum only.
pub(super) fn expected_from(
    rank: usize,
    mode: SyncMode,
    pattern: &Option<Pattern>,
    arrivals: &RoundArrivals,
) -> Option<u32> {
    match (mode.arrivals, pattern) {
        (Arrivals::Msg(_), _) => None,
        (Arrivals::Cached, Some(pattern)) => Some(pattern.expected[rank]),
        _ => Some(arrivals.counts()[rank]),
    }
}
