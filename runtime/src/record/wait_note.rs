//! The reason why the running task waits, for reports.

use std::cell::Cell;

use talpf_primitives::thread_local;

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
