//! Events of a run as a whole, for `tracing`: none for a message or a poll.
//!
//! Without the feature `tracing` nothing is said, and without a subscriber nothing is heard.
#![cfg_attr(not(feature = "tracing"), expect(unused_variables, reason = "nothing is said"))]

use std::fmt::Display;

/// Target of what concerns messages.
#[cfg(feature = "tracing")]
const TARGET: &str = "talpf::tampi";

/// Says that the ranks of a run begin, with the protocols of their messages.
pub(crate) fn begins(ranks: u32, protocols: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: TARGET, ranks, %protocols, "ranks begin");
}

/// Says that the rank of this process begins, with the MPI below it.
#[cfg(feature = "mpi")]
pub(crate) fn begins_over_mpi(
    rank: u32,
    ranks: u32,
    period: &dyn Display,
    version: impl Fn() -> String,
) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: TARGET, rank, ranks, %period, version = version(), "a rank over MPI begins");
}

/// Says that the run fails.
pub(crate) fn fails(error: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::error!(target: TARGET, %error, "the run fails");
}
