//! Workers and their queues.
//!
//! This room knows records and the counts of groups. It calls what runs tasks through a [`Runner`],
//! for which its workers are made, and what finds hangs through a [`Watchdog`]; it knows neither of
//! them, no access and no replay. Tasks reach it by [`schedule`], [`schedule_released`] and
//! [`schedule_at`], and leave it by [`count_completion`]. A second executor stands behind the same
//! queues: discrete events in virtual time (`virtual_time`), on a single worker.
//!
//! Every worker has a *next slot* (the task that its last release or wake-up made ready, run at
//! once, as an immediate successor), two deques, an affinity queue, and a part in the idle protocol
//! (`README.md` beside this file). Ready tasks of a priority other than 0 go to a shared queue of
//! buckets. Those who share queues and steal from each other are a set (`worker_set.rs`), mostly of all
//! workers. A worker searches for work in this order: higher priorities, next slot, own deques,
//! affinity queue, tasks from outside, other workers, lower priorities; then it polls for the tasks
//! that wait for idleness, and then it parks.

mod block_on;
mod blocked_thread;
mod census;
mod check_blocking;
mod current;
mod idle_set;
mod idleness;
mod io;
mod meter;
mod outside_trace;
mod policy;
mod priority;
mod runner;
mod shared;
#[cfg(feature = "tracing")]
pub(crate) mod spans;
mod stealing;
mod time;
mod timers;
mod trace_state;
mod tracer;
mod virtual_time;
mod watchdog;
mod worker;
mod worker_set;
mod worker_slot;
#[cfg(feature = "tracing")]
mod worker_spans;

pub use self::check_blocking::check_blocking;
pub use self::current::{worker_has_nothing_else, worker_is_spare};
pub use self::policy::{NoPolicy, Policies, Policy};

pub(crate) use self::block_on::block_on;
pub(crate) use self::census::Census;
pub(crate) use self::current::{
    Reason, count_completion, is_for_task_of, on_worker_for, own_index, schedule, schedule_at,
    schedule_released, throttle, trace, trace_begin, trace_edge, trace_end, worker_index,
};
pub(crate) use self::idleness::{idle, idle_until};
pub(crate) use self::policy::{Affinity, begins_block, preferred_workers};
pub(crate) use self::runner::Runner;
pub(crate) use self::shared::{Shared, prepare};
pub(crate) use self::time::{A_TIME, wait_for};
pub use self::virtual_time::{CoreTimes, Cost, EventSource, VirtualTime};
pub(crate) use self::watchdog::{Stillness, Watchdog};
pub(crate) use self::worker_set::WorkerSet;
