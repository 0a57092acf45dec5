//! The price of a link: a model of the time that messages take between processes.
//!
//! A [`LinkModel`] holds the figures of a machine, in the terms of LogGP: overheads of sender and
//! receiver, latency, gap between messages, bandwidth. It is read from `--link`-like text
//! ([`LinkModel::parse`]), or from a profile in TOML, several of which come with the crate
//! ([`LinkModel::profile`]). A [`Network`] is the state machine that carries messages as the model
//! says: ports, memories and buffers that messages wait for. Both are pure functions of what they
//! are given. No clock is read; time is integer nanoseconds, rounded up.
//!
//! A message goes through these stages:
//!
//! ```text
//!  post ─ send overhead ─► port of the sender's node ─ latency, hops ─► port of the receiver's
//!         one at a time     wire bytes / bandwidth                       node, as long again but
//!         per process       or the gap if longer                         cut through: the last byte
//!                                                                        arrives when it is free
//!                       ─► receive overhead, one at a time per process ─► arrived
//! ```
//!
//! With `noise=5us,seed=7` each message is late by a time of at most 5 us, which is part of the send
//! overhead: a seed gives the same times in each run, and messages of one process keep their order.
//!
//! Messages inside a node go through its memory in place of the ports, if the model has one.
//! Deliberately absent: routes (a message meets others only at the ports of both ends), and
//! contention between a node's memory and its port.
//!
//! **Source**: Alexandrov et al., "LogGP", SPAA 1995.

mod document;
mod error;
mod keys;
mod link_model;
mod network;
mod profiles;
mod quantity;
mod read;
mod route;

pub use document::Entry;
pub use error::LinkModelError;
pub use link_model::LinkModel;
pub use network::{Delivery, HeldMessage, MessageId, Network};
