//! Detection of hangs, in which no task can run, and the reports on them.
//!
//! An idle worker checks now and then. The runtime hangs when for the configured time no worker
//! began, ended or was in a task that counts as progress, some task or thread waits, and none waits
//! for a time or for something unknown to the runtime. Workers that are in a task do not count if
//! all of them wait for another thread, as the system reports, and one of them in a task that runs
//! inside a spawn: it may wait for a lock that the spawner holds. A task that waits for one of
//! several things counts as waiting for the last one known to the runtime that it has polled. Code
//! that knows of an outside which may end the hang decides (`Runtime::judge_hangs`). All waits get
//! the report as an error, from then on for ever: the tasks that are stuck keep their memory. A
//! certain hang is reported before that time (`hang/certain.rs`).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use talpf_primitives::Mutex;
use talpf_primitives::thread::{self, ThreadId};

use crate::callback;
use crate::config::Config;

mod certain;
mod watch;

pub(crate) use self::watch::HangWatch;

type Describe = Arc<dyn Fn(&mut String) + Send + Sync>;
/// Names of the closures in reports.
const REPORTER: &str = "a reporter of hangs";
const JUDGE: &str = "the judge of hangs";

type Judge = Box<dyn Fn() -> bool + Send + Sync>;

/// The hang detection of a runtime.
#[derive(Default)]
pub(crate) struct Hang {
    report: OnceLock<Arc<str>>,
    last: Mutex<Option<Last>>,
    reporters: Arc<Mutex<Vec<Describe>>>,
    /// Threads that are in a reporter.
    reporting: Mutex<Vec<ThreadId>>,
    judge: OnceLock<Judge>,
}

/// The findings of the last check.
#[derive(Clone, Copy)]
struct Last {
    progress: u64,
    /// Time since which the progress has not changed.
    since_ns: u64,
    /// `true` if the tasks that were complete by then have been settled.
    is_settled: bool,
}

/// A text in hang reports and dumps, until this drops.
#[must_use = "the text is removed when this is dropped"]
pub struct Reporter {
    describe: Describe,
    reporters: Arc<Mutex<Vec<Describe>>>,
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.reporters.lock().retain(|known| !Arc::ptr_eq(known, &self.describe));
    }
}

impl Hang {
    /// Returns the report, once the runtime hangs.
    pub(crate) fn report(&self) -> Option<Arc<str>> {
        self.report.get().cloned()
    }

    pub(crate) fn add_reporter(&self, describe: Describe) -> Reporter {
        self.reporters.lock().push(Arc::clone(&describe));
        Reporter { describe, reporters: Arc::clone(&self.reporters) }
    }

    /// Sets the judge, which is called before a report. The first one stays.
    pub(crate) fn set_judge(&self, judge: Judge) {
        let _ = self.judge.set(judge);
    }

    /// Returns the time between checks, if there are any.
    pub(crate) fn period(&self, config: &Config) -> Option<Duration> {
        let watched = !config.hang_after.is_zero() && self.report.get().is_none();
        watched.then(|| (config.hang_after / 4).max(Duration::from_millis(1)))
    }

    /// Adds the texts of the reporters, unless called by a reporter: it may take a dump, or wait
    /// and so report the hang itself, and would be called again without end.
    pub(crate) fn note(&self, text: &mut String) {
        let me = thread::current().id();
        let mut reporting = self.reporting.lock();
        if reporting.contains(&me) {
            return;
        }
        reporting.push(me);
        drop(reporting);
        let reporters = self.reporters.lock().clone();
        for describe in reporters {
            // The last owner drops the reporter, which may be this call.
            let described = callback::call(REPORTER, || {
                describe(text);
                drop(describe);
            });
            if let Err(reason) = described {
                text.push_str(&format!("  {REPORTER} panicked: {reason}\n"));
            }
        }
        self.reporting.lock().retain(|thread| *thread != me);
    }
}
