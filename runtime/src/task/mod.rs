//! Tasks: their records, their states, and the types that programs use.
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
//! task on: [`satisfy`] from pending to ready, after its actions and with its tile locks if it has
//! any (`ready.rs`, `access/tile_lock.rs`), [`resolve`] from ended to complete.

mod body;
mod builder;
mod children;
mod clause;
mod event;
mod failure;
mod handle;
mod ready;
mod repeated;
mod run;
mod spawn;
mod task_loop;
mod waker;
mod weak;

pub(crate) use self::body::BodyCell;
pub use self::builder::{Append, Once, TaskBuilder};
pub use self::children::Children;
pub(crate) use self::children::Nest;
pub use self::clause::{Clause, IntoAccess, Many, One};
pub use self::event::PendingEvent;
pub use self::failure::fail_current_task;
pub use self::handle::JoinHandle;
pub use self::ready::{Actions, Before, HeldBack, Ready};
pub use self::run::check_blocking;
pub use self::task_loop::TaskLoop;
pub use self::waker::{note_outside, note_wait};

pub(crate) use self::clause::Clauses;
pub(crate) use self::failure::{catch_panic, defer_release, fail, has_failed, is_unwinding};
pub(crate) use self::repeated::{Repeated, free_task, new_repeated, repeated, repeated_async};
pub(crate) use self::run::{
    current, current_group, is_for_task_of, outside_tasks, release_ready, resolve, resolve_access,
    run, satisfy,
};
pub(crate) use self::spawn::{SPAWNING, spawn_future};
pub(crate) use self::waker::{take_note, wake_suspended};
