//! The settings of a runtime.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use talpf_traces::Recorder;

use crate::cores::cores;
use crate::data::ArrayMemory;
use crate::graph::GraphRecorder;
use crate::idle_policy::IdlePolicy;
use crate::monitor::Monitor;
use crate::scheduler::{Policies, VirtualTime};

/// The settings of a [`Runtime`](crate::Runtime).
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of worker threads, in [`Config::WORKERS`]. The default is the number of cores.
    pub workers: usize,
    /// Number of sets into which the workers are divided, as evenly as possible: from 1, the default,
    /// to the number of workers. A group belongs to one set
    /// ([`Runtime::group_in`](crate::Runtime::group_in)), and only its workers run the tasks of the
    /// group, also when something of another set has made them ready. So tasks of one set never take
    /// a worker from those of another, and no worker without work helps another set. Actions of tasks
    /// run wherever the tasks become ready. In virtual time there is one set.
    pub worker_sets: usize,
    /// Behaviour of a worker without work.
    pub idle: IdlePolicy,
    /// Time without progress after which the runtime reports a hang; zero for never.
    ///
    /// There is no progress when no worker is in a body, no task is ready, and every suspended task
    /// waits for something of this runtime. If a thread outside keeps a guard for longer than this
    /// while tasks wait for its region, that counts as a hang too.
    ///
    /// On Linux a certain hang is reported within some tens of milliseconds whatever the period:
    /// all workers are parked, no timer runs, and all other threads of the process wait for
    /// threads, too, so that no thread is left to end it.
    pub hang_after: Duration,
    /// Number of tasks of a group that may be outstanding, ready or not, before spawns on a worker
    /// run ready ones. At 16 times as many, spawns steal and, if there is nothing to steal, wait
    /// for the workers that are in a body: a millisecond at most every 16 spawns, since those
    /// bodies may wait for the spawner. They also run some tasks when plenty are ready that take
    /// less than half a microsecond, whose data would be cold by the time another worker ran them.
    /// A spawn is a scheduling point then: other tasks may run inside it, so it must not be called
    /// while a lock is held that they take.
    /// [`TaskBuilder::unthrottled`](crate::TaskBuilder::unthrottled) disables that for a spawn,
    /// `usize::MAX` for all; [`Group::room`](crate::Group::room) makes async spawners wait instead.
    ///
    /// A task that waits inside a spawn for such a lock keeps its worker for ever. The hang watch
    /// detects that on Linux, if all workers that are in a task wait for a lock, a condition or a
    /// thread: on a worker that has nothing to do, or on a thread that blocks in a wait of this
    /// runtime. With one worker and no such thread, and with locks that spin, it is not detected.
    pub throttle: usize,
    /// Recorder of the trace, if there is one.
    pub recorder: Option<Recorder>,
    /// Recorder of the graph of all tasks, if there is one.
    pub graph: Option<GraphRecorder>,
    /// View of the runtime for code outside, if there is one.
    pub monitor: Option<Monitor>,
    /// Source of the memory of arrays; `None` for the allocator.
    pub memory: Option<Arc<dyn ArrayMemory>>,
    /// Virtual machine on which tasks run in virtual time, in place of workers in real time. One
    /// thread runs all bodies then, whatever the number of workers, no spawn runs other tasks, and
    /// hangs are found at once.
    pub virtual_time: Option<VirtualTime>,
    /// Policies of the scheduler, for measurements without some of them.
    #[doc(hidden)]
    pub policies: Policies,
}

impl Config {
    /// Possible numbers of workers.
    pub const WORKERS: RangeInclusive<usize> = 1..=1024;
}

impl Default for Config {
    fn default() -> Self {
        Config {
            workers: cores(),
            worker_sets: 1,
            idle: IdlePolicy::default(),
            hang_after: Duration::from_secs(10),
            throttle: 256,
            recorder: None,
            graph: None,
            monitor: None,
            memory: None,
            virtual_time: None,
            policies: Policies::ALL,
        }
    }
}
