//! The errors of names.

use crate::numbers::Rank;

/// An error of a name that a rank publishes or waits for: [`Context::publish`](crate::Context::publish),
/// [`Context::lookup`](crate::Context::lookup).
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// A name is too long.
    #[error("the name `{name}` has {bytes} bytes, expected at most {limit}")]
    TooLong {
        /// The name.
        name: String,
        /// Number of its bytes.
        bytes: usize,
        /// The largest number of bytes.
        limit: usize,
    },
    /// A rank has published two slots under one name.
    #[error("{rank} has published `{name}` before")]
    PublishedTwice {
        /// The rank that publishes.
        rank: Rank,
        /// The name.
        name: String,
    },
    /// A rank has ended and has not published the name that another one waits for.
    #[error("{rank} waits for {owner} to publish `{name}`, which has ended without doing so")]
    NotPublished {
        /// The rank that waits.
        rank: Rank,
        /// The rank that has ended.
        owner: Rank,
        /// The name.
        name: String,
    },
    /// The run has failed before a name was published.
    #[error("{rank} waits for {owner} to publish `{name}`, which it does not do: {reason}")]
    Failed {
        /// The rank that waits.
        rank: Rank,
        /// The rank that was to publish.
        owner: Rank,
        /// The name.
        name: String,
        /// The failure, with the rank that it is of.
        reason: String,
    },
    /// A slot has elements of another type than asked for.
    #[error("`{name}` of {owner} is a slot of `{there}`, and {rank} asks for one of `{here}`")]
    OtherElements {
        /// The rank that asks.
        rank: Rank,
        /// The rank that has published.
        owner: Rank,
        /// The name.
        name: String,
        /// The type that was asked for.
        here: &'static str,
        /// The type of the elements of the slot.
        there: String,
    },
}
