//! The checks for hangs, which workers and blocked threads call when they have nothing to do.

use std::sync::Arc;

use super::{JUDGE, Last, certain};
use crate::callback;
use crate::control_plane;
use crate::dump::Dump;
use crate::group::GroupInner;
use crate::record::{Phase, Record, RecordId, Role, SPAWNING, for_each_record};
use crate::scheduler::{A_TIME, Shared, Stillness, Watchdog, WorkerSet};
use crate::task::wake_suspended;

/// The observer that finds hangs.
pub(crate) struct HangWatch;

impl Watchdog for HangWatch {
    fn watch(&self, shared: &Shared) {
        let hang = &shared.hang;
        if hang.period(&shared.config).is_none() {
            return;
        }
        let Some(mut last) = hang.last.try_lock() else {
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
            *hang.last.lock() = Some(Last { progress, since_ns, is_settled });
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
        let judgement = hang.judge.get().map_or(Ok(true), |judge| callback::call(JUDGE, judge));
        if judgement == Ok(false) {
            // Not at once again: code outside may need this core.
            return note(now_ns - patience_ns / 4 * 3, true);
        }
        let mut report = Dump::take(shared).to_string();
        if let Err(reason) = judgement {
            report.push_str(&format!("{JUDGE} panicked: {reason}\n"));
        }
        notify(shared, report);
    }

    fn is_certain(&self, shared: &Shared, before: &mut Option<Stillness>) -> bool {
        certain::is_certain(shared, before)
    }

    fn is_stuck(&self, shared: &Shared) -> bool {
        is_stuck(shared, false)
    }

    fn report_certain(&self, shared: &Shared) {
        notify(shared, Dump::take(shared).to_string());
    }
}

/// Gives the report to all that wait.
pub(super) fn notify(shared: &Shared, report: String) {
    let report = Arc::from(report);
    if shared.hang.report.set(Arc::clone(&report)).is_ok() {
        control_plane::hangs(&report);
    }
    for_each_task(shared, |id, _, phase, _| {
        if phase == Phase::Suspended {
            wake_suspended(id);
        }
    });
    shared.groups().iter().for_each(|group| group.wake_all());
    shared.wake_blocked();
}

/// Returns `true` if some task or thread waits, and none may go on by itself. Running tasks do not
/// go on if they are `locked_out`, and ready ones do not if all workers of their set are.
pub(super) fn is_stuck(shared: &Shared, locked_out: bool) -> bool {
    let are_out = |set: &WorkerSet| locked_out && set.are_all_in_tasks();
    if shared.sets().any(|set| !are_out(set) && (set.has_ready() || set.has_next())) {
        return false;
    }
    let goes_on = |what: Option<&str>| what.is_none_or(|what| what == A_TIME);
    let blocked = shared.blocked_on();
    let mut waits = !blocked.is_empty() || shared.groups().iter().any(|group| group.has_waiters());
    let mut goes = blocked.iter().any(|what| goes_on(*what));
    for_each_task(shared, |_, task, phase, group| match (phase, task.role()) {
        // A service that waits for a time or for idleness works for the others' waits, and is no
        // wait itself.
        (Phase::Suspended, Role::Service) => goes |= task.waits_for().is_none(),
        (Phase::Suspended, _) => {
            waits = true;
            goes |= goes_on(task.waits_for());
        }
        (Phase::Created, _) if task.pending.units() >= SPAWNING => goes |= !are_out(&group.set),
        (Phase::Created, _) => waits = true,
        // Perhaps woken from outside a moment ago, before any worker has taken it.
        (Phase::Scheduled, role) => goes |= role != Role::Service && !are_out(&group.set),
        (Phase::Running | Phase::Notified, role) => goes |= role != Role::Service && !locked_out,
        _ => {}
    });
    waits && !goes
}

fn for_each_task(
    shared: &Shared,
    mut visit: impl FnMut(RecordId, &'static Record, Phase, &GroupInner),
) {
    let groups = shared.groups();
    for_each_record(|id, task| {
        let (_, phase) = task.state.phase();
        if phase == Phase::Free || task.owner() != id {
            return;
        }
        if let Some(group) = groups.iter().find(|group| group.is_of(task)) {
            visit(id, task, phase, group);
        }
    });
}
