//! A dataflow task runtime: tasks over in, out and inout regions of arrays.
//!
//! Programs own shared memory in [`Array`]s and [`Matrix`]es and spawn tasks that declare the
//! regions they read and write. The order of the spawns decides which tasks wait for which: any
//! schedule gives the same bytes as running the tasks one after another.
//!
//! ```
//! use talpf_runtime::{Array, Config, Runtime};
//!
//! let runtime = Runtime::new(Config::default())?;
//! let numbers = Array::new(&runtime, vec![1u64; 1000], 100)?;
//! let sums = Array::new(&runtime, vec![0u64; numbers.tiles()], 1)?;
//! for tile in 0..numbers.tiles() {
//!     let task = runtime.task("sum").input(&numbers.tile(tile)).output(&sums.tile(tile));
//!     task.spawn(|numbers, mut sum| sum[0] = numbers.iter().sum())?;
//! }
//! let total = runtime.task("total").input(&sums.all()).run(|sums| sums.iter().sum::<u64>())?;
//! assert_eq!(runtime.block_on(total)??, 1000);
//! # Ok::<(), talpf_runtime::Error>(())
//! ```
//!
//! The rules (R1 to R4 of the design):
//!
//! * Shared memory is reached through guards only: [`In`], [`Out`], [`InOut`], [`Concurrent`],
//!   [`Commutative`], [`Reduction`].
//! * A region is released when its guard drops, wherever the guard has travelled. A task is
//!   complete when its body has ended, its guards are gone and its [`PendingEvent`]s are resolved.
//! * Tasks of one group are ordered as they are spawned, except for concurrent, commutative and
//!   reducing ones among themselves. [`Children`] are ordered where their parent is.
//! * A task that panics poisons the regions that it would have written: its successors do not run,
//!   and the wait reports the chain of failures.

mod at_once;
mod byte_layout;
mod callback;
pub mod clause;
mod clock;
mod config;
mod control_plane;
mod cores;
mod data;
mod dependency;
mod dump;
mod error;
mod graph;
mod group;
mod guard;
mod hang;
mod idle_policy;
mod lend;
mod mains;
mod metrics;
mod monitor;
mod record;
mod reduction;
mod replay;
mod runtime;
mod scheduler;
mod scope;
#[cfg(feature = "tracing")]
mod spans;
// For the layers above, not for programs.
#[doc(hidden)]
pub mod service;
#[cfg(all(test, talpf_shuttle))]
mod shuttle_tests;
mod task;
mod wakers;

pub use ndarray::{Ix1, Ix2};

// For the layers above, not for programs.
#[doc(hidden)]
pub use self::at_once::{read_if_free, while_free};
#[doc(hidden)]
pub use self::byte_layout::ByteLayout;
pub use self::clock::Clock;
pub use self::config::Config;
pub use self::cores::cores;
// For the layers above, not for programs.
#[doc(hidden)]
pub use self::cores::{CoreMask, core_mask, machine_id, spawn_on_other_core};
pub use self::data::{
    Allocation, Array, ArrayLabel, ArrayMemory, Matrix, Mode, Rect, Region, Tiling, Token,
};
pub use self::dump::{Dump, Standing};
pub use self::error::{Error, Failure};
pub use self::graph::{Dependency, GraphRecorder, GraphTask, Outcome, TaskGraph, Waits};
pub use self::group::{Group, Lookahead, Wait, is_cancelled};
#[doc(hidden)]
pub use self::guard::Hold;
pub use self::guard::{Commutative, Concurrent, In, InOut, Out};
pub use self::hang::Reporter;
pub use self::idle_policy::{IdlePolicy, NoIdlePolicy};
pub use self::lend::Lend;
pub use self::mains::Mains;
pub use self::metrics::{Delays, Metrics, QueueDepths};
pub use self::monitor::Monitor;
#[doc(hidden)]
pub use self::record::{note_outside, note_wait};
pub use self::reduction::{Reduction, operator};
pub use self::replay::{Each, Iteration, current_step};
pub use self::runtime::Runtime;
pub use self::scheduler::{CoreTimes, Cost, EventSource, VirtualTime};
#[doc(hidden)]
pub use self::scheduler::{
    NoPolicy, Policies, Policy, check_blocking, worker_has_nothing_else, worker_is_spare,
};
pub use self::scope::Scope;
#[cfg(feature = "tracing")]
pub use self::spans::SpanLayer;
pub use self::task::{
    Children, HeldBack, IntoAccess, JoinHandle, OnReady, Once, PendingEvent, Ready, TaskBuilder,
    TaskLoop, fail_current_task,
};
