//! Tasks: their records, their life, and what user code sees of them.
//!
//! A task lives in a pooled [`Record`]. Its life:
//!
//! ```text
//! spawned ──► pending ──► ready ──► running ──► ended ──► complete
//!             (edges)              ▲      │               (record reused)
//!                                  └ suspended
//! ```
//!
//! *Pending*: open accesses of earlier tasks are still linked to it. *Ended*: the body has
//! returned. *Complete*: its guards are gone and its pending events are resolved as well (R2).
//! Whoever brings the counter of the next step to zero moves the task on: [`satisfy`] from pending
//! to ready, [`resolve`] from ended to complete.

mod access_list;
mod body;
mod builder;
mod clause;
mod counter;
mod event;
mod failure;
mod handle;
mod label;
mod pool;
mod record;
mod repeated;
mod run;
mod spawn;
mod state;
mod waker;

pub use self::builder::TaskBuilder;
pub use self::event::PendingEvent;
pub use self::failure::fail_current_task;
pub use self::handle::JoinHandle;
pub use self::waker::{note_outside, note_wait};

pub(crate) use self::access_list::{Accesses, edge};
pub(crate) use self::clause::{Clause, Clauses, Many};
pub(crate) use self::counter::EventCounter;
pub(crate) use self::failure::{is_unwinding, put_aside};
pub(crate) use self::label::Label;
pub(crate) use self::pool::{RecordId, for_each_record, record};
pub(crate) use self::record::Record;
pub(crate) use self::repeated::{Repeated, free_task, new_repeated, repeated, repeated_async};
pub(crate) use self::run::{current, release_ready, resolve_access, run, satisfy};
pub(crate) use self::spawn::{Role, SPAWNING, Traits, spawn_future};
pub(crate) use self::state::Phase;
pub(crate) use self::waker::{take_note, wake_suspended};
