//! Syncs, which end the rounds of a lane.
//!
//! A [`SyncBuilder`] closes a round when it is spawned. The group waits for the end of the round:
//! by a window that the round holds, or by a pending event of its own. The engine of the rank
//! advances the sync through its stages, whenever something has changed: posted, counts exchanged,
//! arrived, barrier passed or acknowledged, windows closed. The engine never waits: the polling
//! task and each thread that changes something call it, and so do peers that have posted something
//! while the rank's task is suspended.

mod abandoned;
mod absent;
mod active_sync;
mod arrivals;
mod builder;
mod counting;
mod declared_windows;
mod deferred;
mod dissemination;
mod doorbell;
mod engine;
mod handle;
mod lane_state;
mod mode;
mod opening;
mod outcome;
mod receiver;
mod replayed_sync;
mod report;
mod response_flag;
mod stages;
mod successive;
mod wait_flag;

pub use self::builder::{EachStep, SyncBuilder};
pub use self::handle::SyncHandle;
pub use self::mode::{Arrivals, SyncMode};

pub(crate) use self::doorbell::Doorbell;
pub(crate) use self::engine::Limits;
pub(crate) use self::outcome::Outcome;
pub(crate) use self::receiver::Receiver;
pub(crate) use self::response_flag::ResponseFlag;
pub(crate) use self::successive::spawn_successive;
pub(crate) use self::wait_flag::WaitFlag;
