//! Task-aware one-sided communication: put, get, atomics and syncs as tasks.
//!
//! [`exec`] runs a program on several ranks, [`hook`] on one rank of several processes. Each has a
//! [`Context`]: it registers arrays as [`MemorySlot`]s, issues operations on them, and ends rounds
//! with syncs. Operations are tasks that use their local regions as input or output; a sync is a
//! task that opens *windows* for what peers put, and the regions of the windows are in use until
//! the round has ended. So everything that computes simply declares the regions it reads and writes.
//!
//! Completion levels, named the same everywhere: *posted* (the device has the request), *local*
//! (the source may be reused), *delivered* (visible at the target), *round ended*.

mod config;
mod context;
mod endpoint;
mod error;
mod exchange;
mod exec;
mod held;
mod hook;
mod immediate;
mod numbers;
mod operation;
mod ping_pong;
mod polling;
mod processes;
mod round;
mod rounds;
mod settings;
mod slot;
mod sync;
mod sync_cell;
mod tracer;
mod window;
mod world;

pub use self::config::{Config, PollingFrequency};
pub use self::context::Context;
pub use self::error::Error;
pub use self::exec::exec;
pub use self::hook::hook;
pub use self::numbers::{Lane, Rank, Round};
pub use self::operation::{Destination, OpenRound, Operation, Source};
pub use self::ping_pong::{Link, PingPong};
pub use self::settings::Settings;
pub use self::slot::{MemorySlot, Registrable, RemoteRegion};
pub use self::sync::{Arrivals, Modifier, Sync, SyncHandle, SyncMode};
