//! Task-aware one-sided communication: put, get, atomics and syncs as tasks.
//!
//! [`exec()`] runs a program on several ranks, [`hook()`] on one rank of several processes,
//! [`exec_on_rail`] on several ranks of each. A rank has a [`Context`]: it registers arrays as
//! [`MemorySlot`]s, issues operations on them, and ends rounds with syncs. Operations are tasks that use their local regions as input or output; a sync
//! is a task that opens *windows* for puts of peers, and the regions of the windows are in use
//! until the round has ended. So a task that computes simply declares the regions it reads and
//! writes.
//!
//! ```
//! use talpf::{Config, Error, SyncMode, exec};
//! use talpf_runtime::Array;
//!
//! // Every value goes once round a ring of ranks; nothing waits but the last line.
//! let ends = exec(Config { ranks: 4, ..Config::default() }, async |ctx| {
//!     let mine = Array::new(ctx.group(), vec![ctx.rank().0], 1)?;
//!     let inbox = Array::new(ctx.group(), vec![0u32], 1)?;
//!     let slot = ctx.register_global(&inbox).await?;
//!     let next = (ctx.rank().0 + 1) % ctx.size();
//!     for _ in 0..ctx.size() {
//!         ctx.put(&mine.all(), slot.at(next, 0))?;
//!         ctx.sync(SyncMode::CACHED).window(&inbox.all()).spawn()?;
//!         let copy = ctx.group().task("copy").input(&inbox.all()).output(&mine.all());
//!         copy.spawn(|inbox, mut mine| mine[0] = inbox[0])?;
//!     }
//!     Ok::<_, Error>(ctx.group().task("read").input(&mine.all()).run(|mine| mine[0])?.await?)
//! })?;
//! assert_eq!(ends, [0, 1, 2, 3]);
//! # Ok::<(), Error>(())
//! ```
//!
//! Programs that distribute a matrix exchange the outermost cells of neighbours in one line: see
//! [`Halo`].
//!
//! A program that captures something is an `async move` closure, of which each rank runs a clone;
//! shared values are in an `Arc`, and each rank returns its result ([`exec()`] shows it, and the
//! compiler's messages for programs that borrow instead).
//!
//! Completion levels, named the same everywhere: *posted* (the device has the request), *local*
//! (the source may be reused), *delivered* (visible at the target), *round ended*.

mod all_gather;
mod bsp;
mod by_rank;
mod call_arguments;
mod collective;
mod config;
mod context;
mod control_plane;
mod decomposition;
mod double_buffered_channel;
mod endpoint;
mod error;
mod exec;
mod failure;
mod foreign;
mod halo;
mod held_guard;
mod hook;
mod immediate;
mod iteration;
mod lane;
mod lane_address;
mod libraries;
mod names;
mod notification;
mod numbers;
mod one_sided;
mod open_rounds;
mod operation;
mod peer;
mod phaser;
mod polling;
mod probe;
mod processes;
mod profile;
mod published_slot;
mod queue;
mod registration;
mod rehook;
mod remote_calls;
mod round;
mod rounds;
mod sampled_value;
mod sender;
mod settings;
mod signal;
mod slot;
mod superstep_exchange;
mod sync;
mod tracer;
#[cfg(doctest)]
mod variance;
mod waiting_task;
mod window;
mod world;

pub use self::bsp::Bsp;
pub use self::collective::{Allgather, Allreduce, Alltoall, Broadcast, Gather, Scan, Scatter};
pub use self::config::{Config, PollingFrequency, Progress};
pub use self::context::Context;
pub use self::decomposition::{Decomposition, Face};
pub use self::double_buffered_channel::{DoubleBufferedChannel, Link};
pub use self::error::{DecompositionError, EndError, Error, NameError, QueueError};
pub use self::exec::exec;
pub use self::halo::Halo;
pub use self::hook::{exec_on_rail, hook, hook_on_rail};
pub use self::iteration::Iteration;
pub use self::lane::Lane;
pub use self::notification::{
    Inbox, Multicast, Notification, Notifications, Notified, NotifiedTask, Receive, Wait, WaitAll,
};
pub use self::numbers::{Elements, LaneNumber, Rank, Round};
pub use self::one_sided::{LaneScope, OneSided};
pub use self::operation::{Destination, OpenRound, Operation, Source};
pub use self::phaser::{Phaser, PhaserSignaller, PhaserWaiter};
pub use self::probe::Machine;
pub use self::profile::Profile;
pub use self::published_slot::PublishedSlot;
pub use self::queue::{QueueReceiver, QueueSender, RemoteQueue};
pub use self::remote_calls::{CallClient, CallServer, RemoteCalls};
pub use self::sampled_value::{SampleReader, SampleWriter, SampledValue};
pub use self::settings::Settings;
pub use self::slot::{MemorySlot, Registrable, RemoteRegion};
pub use self::sync::{Arrivals, EachStep, SyncBuilder, SyncHandle, SyncMode};
pub use self::window::TicketCounts;
