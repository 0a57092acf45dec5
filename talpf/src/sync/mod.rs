//! Syncs: how the rounds of a lane end.
//!
//! [`Context::sync`](crate::Context::sync) closes a round and spawns a task without a body for what
//! is left of it. From then on the engine of the rank carries the sync through its stages, whenever
//! something has changed: posted, counts exchanged, arrived, barrier passed or acknowledged, windows
//! closed. The engine never waits: the polling task and whoever changes something call it.

mod aftermath;
mod arrivals;
mod builder;
mod engine;
mod looks;
mod mode;
mod request;
mod stages;

pub use self::builder::{Sync, SyncHandle};
pub use self::mode::{Arrivals, Modifier, SyncMode};

pub(crate) use self::engine::Engine;
pub(crate) use self::request::Outcome;
