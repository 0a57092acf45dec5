//! Recording of a worker's events in a trace.
#![allow(unsafe_code, reason = "follows the group pointer of the task that runs")]

use talpf_traces::Event;

use super::worker::Worker;
use crate::group::GroupInner;
use crate::record::{Label, RecordId, Role, record};

impl Worker {
    #[inline]
    pub(super) fn trace(&self, event: impl FnOnce(u64) -> Event) {
        if self.is_traced {
            let now_ns = self.shared.clock.now_ns();
            // Code of the program, which may record another event.
            let event = event(now_ns);
            if let Some(stream) = &mut *self.stream.borrow_mut() {
                stream.record(now_ns, event);
            }
        }
    }

    /// Opens the slice of `task`, and closes the open one, which it returns.
    #[cold]
    pub(super) fn begin_slice(&self, task: RecordId) -> Option<RecordId> {
        let outer = self.slice.replace(Some(task));
        outer.inspect(|&outer| self.trace_slice(outer, false));
        self.trace_slice(task, true);
        outer
    }

    /// Closes the slice of `task`, and opens that of `outer` again.
    #[cold]
    pub(super) fn end_slice(&self, task: RecordId, outer: Option<RecordId>) {
        self.trace_slice(task, false);
        self.slice.set(outer);
        outer.inspect(|&outer| self.trace_slice(outer, true));
    }

    fn trace_slice(&self, task: RecordId, begins: bool) {
        let traced = record(task);
        if traced.role() == Role::Service {
            // A service runs thousands of times in vain: shown as a state of the worker.
            return;
        }
        let number = traced.number(task);
        // SAFETY: the task is in its body, or interrupted there by another one.
        let group = unsafe { GroupInner::of_live_task(traced) }.number();
        let Some(recorder) = &self.shared.config.recorder else {
            return;
        };
        let label = traced.label();
        let number_of = |label: Label| recorder.label(label.text());
        let label = *self.labels.borrow_mut().entry(label).or_insert_with(|| number_of(label));
        self.trace(|_| match begins {
            true => Event::task_begin(group, number, label),
            false => Event::task_end(group, number),
        });
    }
}
