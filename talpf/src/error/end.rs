//! The errors of ends of sampled values and phasers.

use super::Error;
use crate::numbers::Rank;

/// An error of an end of a [`SampledValue`](crate::SampledValue) or of a [`Phaser`](crate::Phaser).
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndError {
    /// An end cannot go on: one that it needs is lost, or the run has failed.
    #[error("{rank} cannot go on with its {end}: {reason}")]
    Failed {
        /// The rank whose end it is.
        rank: Rank,
        /// Name of the end.
        end: &'static str,
        /// The failure, with the rank that it is of.
        reason: String,
    },
    /// A rank that takes part in a phaser has dropped its end, and will not signal a phase.
    #[error(
        "{rank} waits for phase {phase} of a phaser, which {signaller} does not signal: it has dropped its end"
    )]
    SignallerDropped {
        /// The rank that waits.
        rank: Rank,
        /// The rank that has signalled all phases before.
        signaller: Rank,
        /// The phase, from 0.
        phase: u64,
    },
    /// A rank has no such end, or has taken it.
    #[error("{rank} has no {end}")]
    NoEnd {
        /// The rank.
        rank: Rank,
        /// Name of the end.
        end: &'static str,
    },
}

impl EndError {
    /// Returns the error of an end of `rank`, which has failed with `error`.
    #[cold]
    pub(crate) fn of_run(rank: Rank, end: &'static str, error: Error) -> Error {
        match error {
            Error::RunEnded => error,
            error => EndError::Failed { rank, end, reason: error.to_string() }.into(),
        }
    }
}
