//! Tasks: their states, and the types that programs use.
//!
//! This room is where the others meet: [`Steps`] is the `ReadySink` of dependencies and the `Runner`
//! of workers, runs bodies, asks the replay when a task is replayed, and queues tasks in the scheduler
//! of their group.
//!
//! A task lives in a pooled [`Record`](crate::record::Record). Its states:
//!
//! ```text
//! spawned ──► pending ──► ready ──► running ──► ended ──► complete
//!             (edges)              ▲      │               (record reused)
//!                                  └ suspended
//! ```
//!
//! *Pending*: open accesses of earlier tasks are still linked to it. *Ended*: the body has
//! returned. *Complete*: its guards are gone, its pending events are resolved and its children are
//! complete as well (R2). The thread that brings the counter of the next state to zero moves the
//! task on: from pending to ready, after its actions and with its tile locks if it has any
//! (`ready.rs`, `dependency/locking.rs`), as dependencies ask [`Steps`] to; and from ended to
//! complete, in [`resolve`].

mod body;
mod builder;
mod children;
mod clause;
mod event;
mod failure;
mod handle;
mod ready;
mod release;
mod repeated;
mod run;
mod spawn;
mod task_loop;
mod waker;
mod weak;

pub use self::builder::{Append, Once, TaskBuilder};
pub use self::children::Children;
pub use self::clause::{Clause, IntoAccess, Many, One};
pub use self::event::PendingEvent;
pub use self::failure::fail_current_task;
pub use self::handle::JoinHandle;
pub use self::ready::{Actions, Before, HeldBack, OnReady, Ready};
pub use self::task_loop::TaskLoop;

pub(crate) use self::failure::{defer_release, fail, has_failed, is_unwinding};
pub(crate) use self::release::{pass_on, release};
pub(crate) use self::repeated::{Repeated, free_task, new_repeated, repeated, repeated_async};
pub(crate) use self::run::{Steps, current_group, resolve, resolve_access};
pub(crate) use self::spawn::spawn_future;
pub(crate) use self::waker::wake_suspended;
