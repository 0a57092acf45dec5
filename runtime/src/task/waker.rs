//! Wakers of tasks: generation and index in the data pointer, no reference count.
//!
//! A waker may outlive its task and even its runtime: records are never freed, and a waker of an
//! earlier generation changes nothing.
#![allow(unsafe_code, reason = "builds raw wakers")]

use std::task::{RawWaker, RawWakerVTable, Waker};

use crate::group::GroupInner;
use crate::record::{RecordId, record, running};
use crate::scheduler::{self, Reason};

const _: () = assert!(usize::BITS == 64, "generation and index of a task share a pointer");

static VTABLE: RawWakerVTable =
    RawWakerVTable::new(|data| RawWaker::new(data, &VTABLE), wake, wake, |_| {});

/// Creates a waker of the running task.
pub(super) fn of_task(task: RecordId) -> Waker {
    let word = (record(task).generation() as usize) << 32 | task.index() as usize;
    let raw = RawWaker::new(std::ptr::without_provenance(word), &VTABLE);
    // SAFETY: the functions in the table take the word for a number and may be called by any
    // thread, any number of times.
    unsafe { Waker::from_raw(raw) }
}

fn wake(data: *const ()) {
    let word = data.addr();
    // SAFETY: the low half of the word is the index of an id: only `of_task` makes wakers with the
    // table.
    let task = unsafe { RecordId::new(word as u32) };
    if record(task).state.wake((word >> 32) as u32) {
        schedule_woken(task);
    }
}

/// Wakes a suspended task, whatever it waits for.
pub(crate) fn wake_suspended(task: RecordId) {
    if record(task).state.wake(record(task).generation()) {
        schedule_woken(task);
    }
}

/// Queues `task`, which a waker has moved from suspended to scheduled.
fn schedule_woken(task: RecordId) {
    // SAFETY: as for any body that has not ended; the caller alone schedules the task.
    let group = unsafe { GroupInner::of_live_task(record(task)) };
    scheduler::trace_edge(|| group, task, running::current);
    scheduler::schedule(group, task, Reason::Woken);
}
