//! Interruption of a run from outside.

use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use talpf_runtime::Group;

use crate::Error;

/// Handle that interrupts a run while its tasks run. Clones interrupt the same run.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Groups of the ranks in this process.
    groups: Vec<Group>,
    /// Reason of the interruption, if the run was interrupted.
    reason: Option<String>,
}

impl Interrupt {
    /// Cancels the tasks of all ranks, so that the run fails soon with [`Error::Interrupted`], even
    /// if its tasks are already complete. Returns `false` if there was nothing to cancel: before
    /// and after a run, in a variant without tasks, and in a second call.
    pub fn cancel(&self, reason: &str) -> bool {
        let groups = {
            let mut state = self.state.lock();
            let groups = mem::take(&mut state.groups);
            if !groups.is_empty() {
                state.reason = Some(reason.to_owned());
            }
            groups
        };
        // Outside the lock, since actions on cancellation may call anything.
        groups.iter().for_each(|group| group.cancel(reason));
        !groups.is_empty()
    }

    /// Adds the group of a rank, and cancels it if the run has already been interrupted.
    pub(super) fn covers(&self, group: &Group) {
        let mut state = self.state.lock();
        let Some(reason) = state.reason.clone() else { return state.groups.push(group.clone()) };
        drop(state);
        group.cancel(&reason);
    }

    /// Marks the run as over, so that nothing is left to cancel.
    ///
    /// **Errors**: [`Error::Interrupted`] if the run was cancelled.
    pub(super) fn covers_nothing(&self) -> Result<(), Error> {
        let mut state = self.state.lock();
        state.groups.clear();
        if state.reason.is_some() { Err(Error::Interrupted) } else { Ok(()) }
    }
}
