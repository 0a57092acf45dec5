//! The wait that tasks with one inbox, or with one event, have in common.

use std::sync::Arc;

use talpf_runtime::{OnReady, Ready};

use super::Notification;
use super::follows::Completion;
use super::last::Last;
use super::of_rank::{Awaits, OfRank};
use crate::error::Error;
use crate::numbers::Rank;
use crate::window::Area;

/// The notifications that tasks wait for, each for one, as the action that begins their waits.
pub(super) struct Awaited {
    notifications: OfRank,
    id: u32,
    inbox: Option<Area>,
    last: Arc<Last>,
}

impl Awaited {
    pub(super) fn new(notifications: &OfRank, id: u32, inbox: Option<Area>) -> Arc<Self> {
        let notifications = notifications.clone();
        Arc::new(Awaited { notifications, id, inbox, last: Arc::new(Last::new()) })
    }

    pub(super) fn rank(&self) -> Rank {
        self.notifications.rank()
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Returns the last notification that has let a task run.
    pub(super) fn last(&self) -> Option<Notification> {
        self.last.get(self.id)
    }
}

impl OnReady for Awaited {
    fn act(self: Arc<Self>, ready: &Ready) {
        let completion = Completion::Task(ready.hold_back(), Arc::clone(&self.last));
        self.notifications.begin(Awaits::One(self.id, self.inbox), completion);
    }

    /// Fails the run if a put would stay parked, because the task with its inbox does not run.
    fn give_up(&self) {
        if self.inbox.is_some() {
            let error = Error::InboxGivenUp { rank: self.rank(), id: self.id };
            self.notifications.sender().fail(&error);
        }
    }
}
