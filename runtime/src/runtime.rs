//! The runtime: its threads, from start to shutdown.

use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use talpf_primitives::thread;
use talpf_traces::counted;

use crate::config::Config;
use crate::control_plane;
use crate::dump::Dump;
use crate::error::Error;
use crate::group::{self, Group};
use crate::hang::HangWatch;
use crate::idle_policy::IdlePolicy;
use crate::metrics::Metrics;
use crate::monitor::Observed;
use crate::scheduler::{self, EventSource, Shared};
use crate::task::Steps;

/// A pool of workers and the groups of tasks they run. It is its own first group, number 0.
///
/// Dropping a runtime shuts it down, as [`Runtime::shut_down`] does; in a task, a separate thread
/// does that and the drop returns at once.
pub struct Runtime {
    shared: Arc<Shared>,
    group: Option<Group>,
    threads: Vec<thread::JoinHandle<()>>,
    /// I/O and timers of futures that tasks await; one thread, asleep unless they are used.
    tokio: Option<tokio::runtime::Runtime>,
}

impl Runtime {
    /// Starts the workers.
    ///
    /// **Errors**: no worker or too many; no set of workers, or more than workers; threads refused by
    /// the system.
    pub fn new(mut config: Config) -> Result<Self, Error> {
        if config.virtual_time.is_some() {
            (config.workers, config.worker_sets, config.idle) = (1, 1, IdlePolicy::Park);
            (config.throttle, config.hang_after) = (usize::MAX, Duration::ZERO);
        }
        let workers = config.workers;
        if !Config::WORKERS.contains(&workers) {
            let limit =
                if workers == 0 { *Config::WORKERS.start() } else { *Config::WORKERS.end() };
            return Err(Error::Size { what: "number of workers", value: workers, limit });
        }
        let sets = config.worker_sets;
        if !(1..=workers).contains(&sets) {
            let limit = if sets == 0 { 1 } else { workers };
            return Err(Error::Size { what: "number of worker sets", value: sets, limit });
        }
        let refused = |worker: usize, reason: std::io::Error| Error::Spawn {
            worker,
            workers,
            reason: reason.to_string(),
        };
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("talpf-io")
            .enable_all()
            .build()
            .map_err(|reason| refused(0, reason))?;
        let monitor = config.monitor.take();
        control_plane::begins(&config);
        let (shared, unstarted) = scheduler::prepare(config, tokio.handle().clone(), &HangWatch);
        monitor.inspect(|monitor| monitor.attach(shared.clone()));
        #[cfg(feature = "tracing")]
        scheduler::spans::add_traced(&shared);
        let mut runtime = Runtime {
            shared,
            group: None,
            threads: Vec::with_capacity(workers),
            tokio: Some(tokio),
        };
        for (index, worker) in unstarted.into_iter().enumerate() {
            let name = format!("talpf-worker-{index}");
            let thread = thread::Builder::new().name(name).spawn(move || worker.start::<Steps>());
            runtime.threads.push(thread.map_err(|reason| refused(index, reason))?);
        }
        runtime.group = Some(runtime.group_in("the runtime", 0, 0));
        Ok(runtime)
    }

    /// Adds a group: tasks with arrays, order and waits of their own. Traces show it as `number`. Its
    /// tasks are run by the first set of workers, if there are several
    /// ([`Config::worker_sets`]).
    pub fn group(&self, name: impl Into<String>, number: u32) -> Group {
        self.group_in(name, number, 0)
    }

    /// Adds a group, as [`Runtime::group`] does, whose tasks are run by one set of workers. `set` counts
    /// from 0 and is taken modulo the number of sets.
    ///
    /// ```
    /// # use talpf_runtime::{Config, Error, Runtime};
    /// // Two sets of two workers: tasks of the first program never keep the second one waiting.
    /// let runtime = Runtime::new(Config { workers: 4, worker_sets: 2, ..Config::default() })?;
    /// let programs = [0, 1].map(|set| runtime.group_in("program", set, set as usize));
    /// let sums = programs.map(|program| program.task("sum").run(|| (0..1000u64).sum::<u64>()));
    /// for sum in sums {
    ///     assert_eq!(runtime.block_on(sum?)??, 499_500);
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    pub fn group_in(&self, name: impl Into<String>, number: u32, set: usize) -> Group {
        Group::new((&self.shared, self.shared.set(set)), name.into(), number, None)
    }

    /// Adds a group, as [`Runtime::group`] does, for tasks that share data with each other rather
    /// than with other groups. From its first array with tiles of 128 KiB or more on, its tasks,
    /// except inline ones and those with a priority, are queued for one worker. From then on a
    /// worker takes tasks that are queued for another, of whichever group, only if it has been idle
    /// for as long as such a tile takes to move, 50 us at most. `worker` counts from 0 and is taken
    /// modulo the number of workers. The tasks are run by workers of its set only.
    pub fn group_at(&self, name: impl Into<String>, number: u32, worker: usize) -> Group {
        let (set, worker) = self.shared.set_of(worker);
        Group::new((&self.shared, set), name.into(), number, Some(worker))
    }

    /// Blocks this thread until `future` ends.
    ///
    /// **Errors**: called from a task; a hang.
    pub fn block_on<F: Future>(&self, future: F) -> Result<F::Output, Error> {
        scheduler::block_on(&self.shared, "block_on", future)
    }

    /// Sets a closure that the runtime calls before it reports a hang, each time that it would: the
    /// hang is reported only if `judge` returns `true`, that is if nothing from outside will end
    /// it. Of several judges the first one stays.
    #[doc(hidden)]
    pub fn judge_hangs(&self, judge: impl Fn() -> bool + Send + Sync + 'static) {
        self.shared.hang.set_judge(Box::new(judge));
    }

    /// Adds a source of events of virtual time. In real time that does nothing.
    pub fn add_event_source(&self, source: Arc<dyn EventSource>) {
        if let Some(virtual_time) = &self.shared.virtual_time {
            virtual_time.add_source(source);
        }
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.shared.workers()
    }

    /// Returns the number of sets of workers.
    pub fn worker_sets(&self) -> usize {
        self.shared.sets().len()
    }

    /// Returns the behaviour of workers without work.
    pub fn idle_policy(&self) -> IdlePolicy {
        self.shared.config.idle
    }

    /// Waits for all tasks of all groups and joins the workers. Meanwhile tasks that are not
    /// complete may still spawn, in their bodies and actions and through their
    /// [`Children`](crate::Children); all other spawns are refused, with [`Error::ShutDown`].
    ///
    /// **Errors**: those of [`Group::wait`], the first one found; all threads are joined
    /// nevertheless, except workers that a hang has found to wait for a lock that never becomes
    /// free. Called in a task, of whichever runtime: then a separate thread shuts the runtime down,
    /// as if it had been dropped.
    pub fn shut_down(mut self) -> Result<(), Error> {
        scheduler::check_blocking("shut_down")?;
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        if self.tokio.is_none() {
            return Ok(());
        }
        let groups = self.shared.groups();
        self.shared.begin_closing();
        let mut result = scheduler::block_on(&self.shared, "shut_down", group::finish(&groups));
        for group in &groups {
            result = result.and(group.take_failure());
        }
        self.shared.stop();
        for (index, thread) in self.threads.drain(..).enumerate() {
            // A locked-out worker never ends.
            if self.shared.hang.report().is_some() && self.shared.is_worker_locked_out(index) {
                continue;
            }
            // A worker that panicked is a bug of this crate; the others are joined nevertheless.
            let _ = thread.join();
        }
        self.shared.end_outside_trace();
        control_plane::ended(&self.shared.config, &self.shared.metrics());
        if let Some(tokio) = self.tokio.take() {
            tokio.shutdown_background();
        }
        // After a hang some tasks are not complete, and keep their memory.
        if group::are_finished(&groups) {
            self.shared.forget_groups();
        }
        result
    }
}

impl Observed for Shared {
    fn metrics(&self) -> Metrics {
        self.metrics()
    }

    fn dump(&self) -> Dump {
        Dump::take(self)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if self.tokio.is_some() && scheduler::check_blocking("drop").is_err() {
            // A task must not wait, and a worker cannot join itself.
            let mut runtime = ManuallyDrop::new(Runtime {
                shared: Arc::clone(&self.shared),
                group: self.group.take(),
                threads: std::mem::take(&mut self.threads),
                tokio: self.tokio.take(),
            });
            self.shared.begin_closing();
            let end = move || drop(runtime.end());
            // Without a thread to wait in, the workers run their remaining tasks.
            let _ = thread::Builder::new().name("talpf-shutdown".to_owned()).spawn(end);
            return;
        }
        // Callers that want the result call `shut_down`.
        let _ = self.end();
    }
}

impl Deref for Runtime {
    type Target = Group;

    fn deref(&self) -> &Group {
        match &self.group {
            Some(group) => group,
            None => unreachable!("set at the end of `new`"),
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Runtime ({}, {})", counted(self.workers(), "worker"), self.idle_policy())
    }
}
