//! Ending a run from outside.

use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use talpf_runtime::Group;

use crate::Error;

/// With which somebody who is no part of a run ends it while its tasks run. Clones do the same.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The tasks of the ranks that are here.
    groups: Vec<Group>,
    /// Why the run was ended, if it was.
    reason: Option<String>,
}

impl Interrupt {
    /// Cancels the tasks of all ranks, so that the run fails soon: with [`Error::Interrupted`], even
    /// if they were complete already. Returns whether there were any ranks: not before and after a
    /// run, in a variant without tasks, or for the second time.
    pub fn cancel(&self, reason: &str) -> bool {
        let groups = {
            let mut state = self.state.lock();
            let groups = mem::take(&mut state.groups);
            if !groups.is_empty() {
                state.reason = Some(reason.to_owned());
            }
            groups
        };
        // They may do what they want when they are cancelled: not under the lock.
        groups.iter().for_each(|group| group.cancel(reason));
        !groups.is_empty()
    }

    /// The tasks of one more rank, which may come when the run is ended already.
    pub(super) fn covers(&self, group: &Group) {
        let mut state = self.state.lock();
        let Some(reason) = state.reason.clone() else { return state.groups.push(group.clone()) };
        drop(state);
        group.cancel(&reason);
    }

    /// The run is over: from now on there is nothing to cancel.
    ///
    /// **Errors**: [`Error::Interrupted`] if it was cancelled.
    pub(super) fn covers_nothing(&self) -> Result<(), Error> {
        let mut state = self.state.lock();
        state.groups.clear();
        if state.reason.is_some() { Err(Error::Interrupted) } else { Ok(()) }
    }
}
