//! The runtime: its threads, from start to shutdown.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use crate::config::Config;
use crate::error::Error;
use crate::group::Group;
use crate::idle_policy::IdlePolicy;
use crate::scheduler::{self, Shared};
use crate::sync::thread;

/// A pool of workers and the groups of tasks they run. It is its own first group, number 0.
///
/// Dropping it shuts it down.
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
    /// **Errors**: no worker or too many; threads refused by the system.
    pub fn new(mut config: Config) -> Result<Self, Error> {
        let workers = config.workers;
        if !Config::WORKERS.contains(&workers) {
            let limit =
                if workers == 0 { *Config::WORKERS.start() } else { *Config::WORKERS.end() };
            return Err(Error::Size { what: "number of workers", value: workers, limit });
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
        let (shared, seats) = scheduler::prepare(config, tokio.handle().clone());
        monitor.inspect(|monitor| monitor.attach(&shared));
        let mut runtime = Runtime {
            shared,
            group: None,
            threads: Vec::with_capacity(workers),
            tokio: Some(tokio),
        };
        for (index, worker) in seats.into_iter().enumerate() {
            let name = format!("talpf-worker-{index}");
            let thread = thread::Builder::new().name(name).spawn(move || worker.start());
            runtime.threads.push(thread.map_err(|reason| refused(index, reason))?);
        }
        runtime.group = Some(Group::new(&runtime.shared, "the runtime".to_owned(), 0));
        Ok(runtime)
    }

    /// Adds a group: tasks with arrays, order and waits of their own. `number` is what traces show
    /// it under.
    pub fn group(&self, name: impl Into<String>, number: u32) -> Group {
        Group::new(&self.shared, name.into(), number)
    }

    /// Blocks this thread until `future` ends.
    ///
    /// **Errors**: called from a task; a hang.
    pub fn block_on<F: Future>(&self, future: F) -> Result<F::Output, Error> {
        scheduler::block_on(&self.shared, "block_on", future)
    }

    /// Has `judge` asked, again and again, before the runtime says that it hangs: whether nothing
    /// that comes from outside will change that. Of several judges the first one stays.
    pub fn judge_hangs(&self, judge: impl Fn() -> bool + Send + Sync + 'static) {
        self.shared.hang.set_judge(Box::new(judge));
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.shared.workers()
    }

    /// What workers without work do.
    pub fn idle_policy(&self) -> IdlePolicy {
        self.shared.config.idle
    }

    /// Waits for all tasks of all groups and joins the workers.
    ///
    /// **Errors**: as [`Group::wait`], the first one found; everything is joined all the same.
    pub fn shut_down(mut self) -> Result<(), Error> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        if self.tokio.is_none() {
            return Ok(());
        }
        let mut result = Ok(());
        loop {
            for group in self.shared.groups() {
                let ended = scheduler::block_on(&self.shared, "shut_down", group.finish());
                result = result.and(ended.and_then(|waited| waited));
            }
            // A task of one group may have spawned into another that was finished before.
            self.shared.set_closed(true);
            if self.is_finished() || self.shared.hang.report().is_some() {
                break;
            }
            self.shared.set_closed(false);
        }
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A worker that panicked is a bug of this crate; the others are joined all the same.
            let _ = thread.join();
        }
        if let Some(tokio) = self.tokio.take() {
            tokio.shutdown_background();
        }
        if self.is_finished() {
            self.shared.forget_groups();
        }
        result
    }

    /// Whether every task is complete: after a hang some are not, and keep their memory.
    ///
    /// The completions of all groups are read before the spawns of any: if they are as many, there
    /// was an instant without tasks, and only a task could have gone on spawning.
    fn is_finished(&self) -> bool {
        let groups = self.shared.groups();
        let completed: u64 = groups.iter().map(|group| group.completed()).sum();
        completed == groups.iter().map(|group| group.spawned()).sum::<u64>()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if self.tokio.is_some() && scheduler::on_worker_of(&self.shared) {
            // The last handle went in one of its own tasks: a worker cannot join itself.
            let mut runtime = Runtime {
                shared: Arc::clone(&self.shared),
                group: self.group.take(),
                threads: std::mem::take(&mut self.threads),
                tokio: self.tokio.take(),
            };
            let end = move || drop(runtime.end());
            // Without a thread to wait in, the workers go on with what they have.
            let _ = thread::Builder::new().name("talpf-shutdown".to_owned()).spawn(end);
            return;
        }
        // Whoever wants to know the result calls `shut_down`.
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
        write!(f, "Runtime ({} workers, {})", self.workers(), self.idle_policy())
    }
}
