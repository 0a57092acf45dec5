//! How a runtime is set up.

use std::ops::RangeInclusive;
use std::time::Duration;

use talpf_traces::Recorder;

use crate::cores::cores;
use crate::graph::GraphRecorder;
use crate::idle_policy::IdlePolicy;
use crate::monitor::Monitor;

/// The settings of a [`Runtime`](crate::Runtime).
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of worker threads, one of [`Config::WORKERS`]. The default is the number of cores.
    pub workers: usize,
    /// What a worker without work does.
    pub idle: IdlePolicy,
    /// How long nothing may happen before the runtime says that it hangs; zero for never.
    ///
    /// Nothing happens when no worker is in a body, nothing is ready, and every suspended task
    /// waits for something of this runtime. A guard that a thread outside keeps for longer than
    /// this, while tasks wait for its region, counts as a hang too.
    ///
    /// On Linux a hang that is certain is reported within some tens of milliseconds whatever the
    /// period: all workers are parked, no timer runs, and all other threads of the process wait for
    /// threads, too, so that none is left to end it.
    pub hang_after: Duration,
    /// How many tasks of a group may be outstanding, ready or not, before spawns on a worker run
    /// ready ones. At 16 times as many they steal and, if there are none, wait for the workers that
    /// are in a body: a millisecond at most every 16 spawns, for what runs there may wait for the
    /// spawner. They also run some when plenty of tasks are ready that take less than half a
    /// microsecond, which would be cold by the time anybody else ran them. A spawn is a scheduling
    /// point then: other tasks may run inside it, so it must not be called while a lock is held that
    /// they take. [`TaskBuilder::unthrottled`](crate::TaskBuilder::unthrottled) turns that off for a
    /// spawn, `usize::MAX` for all; [`Group::room`](crate::Group::room) has async spawners wait
    /// instead.
    ///
    /// A task that waits inside a spawn for such a lock keeps its worker for ever. The hang watch sees
    /// that on Linux, if all workers that are in a task wait for a lock, a condition or a thread: by a
    /// worker that has nothing to do, or by a thread that blocks in a wait of this runtime. With one
    /// worker and no such thread, and with locks that spin, nothing sees it.
    pub throttle: usize,
    /// Where to record what happens, if anywhere.
    pub recorder: Option<Recorder>,
    /// Where to note the graph of the tasks, if anywhere.
    pub graph: Option<GraphRecorder>,
    /// Through which to look at the runtime from outside, if at all.
    pub monitor: Option<Monitor>,
}

impl Config {
    /// How many workers a runtime can have.
    pub const WORKERS: RangeInclusive<usize> = 1..=1024;
}

impl Default for Config {
    fn default() -> Self {
        Config {
            workers: cores(),
            idle: IdlePolicy::default(),
            hang_after: Duration::from_secs(10),
            throttle: 256,
            recorder: None,
            graph: None,
            monitor: None,
        }
    }
}
