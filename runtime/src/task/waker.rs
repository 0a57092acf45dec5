//! Wakers of tasks: generation and index in the data pointer, no reference count.
//!
//! A waker may outlive its task and even its runtime: records are never freed, and a waker of an
//! earlier generation changes nothing.
#![allow(unsafe_code, reason = "builds raw wakers")]

use std::cell::Cell;
use std::task::{RawWaker, RawWakerVTable, Waker};

use talpf_primitives::thread_local;

use super::run;
use crate::record::{RecordId, record};

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
        run::schedule_woken(task);
    }
}

/// Wakes a suspended task, whatever it waits for.
pub(crate) fn wake_suspended(task: RecordId) {
    if record(task).state.wake(record(task).generation()) {
        run::schedule_woken(task);
    }
}

thread_local! {
    static WAITS_FOR: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Notes the reason why the running task waits. Called by a future that is about to return
/// `Pending` and that nothing outside this process can wake.
///
/// The text goes into hang reports. A task that is suspended without a reason may be woken from
/// outside at any time, so as long as there is such a task the runtime does not report a hang.
pub fn note_wait(what: &'static str) {
    WAITS_FOR.set(Some(what));
}

/// Clears the noted reason, as something outside this process may wake the running task or the
/// thing that it waits for.
pub fn note_outside() {
    WAITS_FOR.set(None);
}

/// Takes the reason noted by the poll that has just ended.
pub(crate) fn take_note() -> Option<&'static str> {
    WAITS_FOR.take()
}
