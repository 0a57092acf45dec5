//! Virtual time: an executor of discrete events in place of workers in real time.
//!
//! A single thread runs everything. Tasks reach it by the queues of a worker, which it empties after every
//! step. Each group has virtual cores of its own; a ready task takes a free core of its group for as
//! long as its work costs, and its body is called when that time is over. A body called at the end
//! needs nothing held back: its regions are its own all the while, and whatever it releases, posts,
//! wakes or spawns happens at the right time. Bodies of no cost, and what follows the first `await`
//! of a body, take a free core for no time. Inline tasks need none.
//!
//! Time stands still while a thread outside goes on, or none waits for the runtime, so a program
//! decides nothing by its own speed. Otherwise the clock moves to the next event whenever no task can
//! start. At one time things happen in this order, and after each of them whatever has become ready
//! starts: events of sources in the order of the sources, timers in the order in which they are due,
//! ends of tasks in the order in which they began. Ready tasks of a group start by priority, then
//! the one released by the last body on that core, then in the order in which they became ready.
//!
//! The runtime itself takes a fixed time for each queued task, on the core that runs it. Deliberately
//! absent: memory that cores share, spawns that take the time of their spawner, moving of tasks
//! between groups.

mod changes;
mod core_streams;
mod costs;
mod executor;
mod ready;
mod state;

pub use self::costs::{CoreTimes, Cost, VirtualTime};
pub use self::state::EventSource;

pub(super) use self::core_streams::CoreStreams;
pub(crate) use self::state::VirtualState;
