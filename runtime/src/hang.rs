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
use crate::dump::Dump;
use crate::record::{Phase, Record, RecordId, Role, SPAWNING, for_each_record};
use crate::scheduler::{A_TIME, Shared};
use crate::task::wake_suspended;

mod certain;

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

    /// Checks for a hang, on a worker that has found nothing to do.
    pub(crate) fn watch(&self, shared: &Shared) {
        if self.period(&shared.config).is_none() {
            return;
        }
        let Some(mut last) = self.last.try_lock() else {
            return;
        };
        let now_ns = shared.clock.now_ns();
        let (progress, busy) = shared.progress();
        let locked_out = busy && shared.is_locked_out();
        let seen = match *last {
            Some(seen) if seen.progress == progress && busy == locked_out => seen,
            _ => {
                *last = Some(Last { progress, since_ns: now_ns, is_settled: false });
                return;
            }
        };
        // Counters of two cores may differ by a little.
        let patience_ns = shared.config.hang_after.as_nanos() as u64;
        let still_ns = now_ns.saturating_sub(seen.since_ns);
        // The calls below may be of code of the program.
        drop(last);
        let note = |since_ns, is_settled| {
            *self.last.lock() = Some(Last { progress, since_ns, is_settled });
        };
        if still_ns >= patience_ns / 2 && !seen.is_settled {
            // The thread that has counted the last completion may have lost its core before it
            // could wake anybody. Tasks woken by this in vain wait again before the next check.
            shared.groups().iter().for_each(|group| group.settle());
            return note(seen.since_ns.max(now_ns.saturating_sub(patience_ns / 4 * 3)), true);
        }
        if still_ns < patience_ns {
            return;
        }
        // The check takes time: a task that began meanwhile shows in the progress only.
        if !is_stuck(shared, locked_out) || shared.progress() != (progress, busy) {
            return note(now_ns, false);
        }
        let judgement = self.judge.get().map_or(Ok(true), |judge| callback::call(JUDGE, judge));
        if judgement == Ok(false) {
            // Not at once again: code outside may need this core.
            return note(now_ns - patience_ns / 4 * 3, true);
        }
        let mut report = Dump::take(shared).to_string();
        if let Err(reason) = judgement {
            report.push_str(&format!("{JUDGE} panicked: {reason}\n"));
        }
        self.notify(shared, report);
    }

    /// Gives the report to all that wait.
    fn notify(&self, shared: &Shared, report: String) {
        let _ = self.report.set(report.into());
        for_each_task(shared, |id, _, phase| {
            if phase == Phase::Suspended {
                wake_suspended(id);
            }
        });
        shared.groups().iter().for_each(|group| group.wake_all());
        shared.wake_blocked();
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

/// Returns `true` if some task or thread waits, and none may go on by itself. Running tasks do not
/// go on if they are `locked_out`, and ready ones do not if all workers are.
fn is_stuck(shared: &Shared, locked_out: bool) -> bool {
    let all_out = locked_out && shared.busy_workers() == shared.workers();
    if !all_out && (shared.has_ready() || shared.has_next()) {
        return false;
    }
    let goes_on = |what: Option<&str>| what.is_none_or(|what| what == A_TIME);
    let blocked = shared.blocked_on();
    let mut waits = !blocked.is_empty() || shared.groups().iter().any(|group| group.has_waiters());
    let mut goes = blocked.iter().any(|what| goes_on(*what));
    for_each_task(shared, |_, task, phase| match (phase, task.role()) {
        // A service that waits for a time or for idleness works for the others' waits, and is no
        // wait itself.
        (Phase::Suspended, Role::Service) => goes |= task.waits_for().is_none(),
        (Phase::Suspended, _) => {
            waits = true;
            goes |= goes_on(task.waits_for());
        }
        (Phase::Created, _) if task.pending.units() >= SPAWNING => goes |= !all_out,
        (Phase::Created, _) => waits = true,
        // Perhaps woken from outside a moment ago, before any worker has taken it.
        (Phase::Scheduled, role) => goes |= role != Role::Service && !all_out,
        (Phase::Running | Phase::Notified, role) => goes |= role != Role::Service && !locked_out,
        _ => {}
    });
    waits && !goes
}

fn for_each_task(shared: &Shared, mut visit: impl FnMut(RecordId, &'static Record, Phase)) {
    let groups = shared.groups();
    for_each_record(|id, task| {
        let (_, phase) = task.state.phase();
        let ours = groups.iter().any(|group| group.is_of(task));
        if phase != Phase::Free && task.owner() == id && ours {
            visit(id, task, phase);
        }
    });
}
