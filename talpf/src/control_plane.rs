//! Events of a run as a whole, for `tracing`: none for an operation, a sync or a poll.
//!
//! Without the feature `tracing` nothing is said, and without a subscriber nothing is heard.
#![cfg_attr(not(feature = "tracing"), expect(unused_variables, reason = "nothing is said"))]

use std::ops::Range;

use crate::config::Config;
use crate::numbers::{LaneNumber, Rank, Round};

/// Target of what concerns supersteps.
#[cfg(feature = "tracing")]
const SYNC: &str = "talpf::sync";
/// Target of what concerns other processes.
#[cfg(feature = "tracing")]
const LINK: &str = "talpf::link";

/// Says that the ranks of a run begin, with their settings.
pub(crate) fn begins(config: &Config) {
    #[cfg(feature = "tracing")]
    tracing::info!(
        target: SYNC,
        ranks = config.ranks,
        polling = ?config.polling,
        credits = config.credits,
        check_conflicts = config.check_conflicts,
        "ranks begin"
    );
}

/// Says that the processes of a run are connected, this one with the ranks `here`.
pub(crate) fn connects(processes: u32, here: &Range<u32>) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: LINK, processes, ?here, "processes are connected");
}

/// Says that a lane repeats the counts of a round from then on.
pub(crate) fn repeats_counts(rank: Rank, lane: LaneNumber, round: Round, expected: u32) {
    #[cfg(feature = "tracing")]
    tracing::debug!(
        target: SYNC, %rank, lane = lane.index(), %round, expected, "the counts are cached"
    );
}

/// Says that a rank of another process is lost.
pub(crate) fn loses(rank: Rank, reason: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: LINK, %rank, reason, "a rank is lost");
}

/// Says that the run fails, because of a rank.
pub(crate) fn fails(rank: Rank, reason: &str) {
    #[cfg(feature = "tracing")]
    tracing::error!(target: SYNC, %rank, reason, "the run fails");
}
