//! A notified put that is a task of its own.

use crate::error::Error;
use crate::operation::Source;
use crate::slot::{KeptRemote, RemoteRegion};

use super::Notifications;

/// A notified put whose task has not run. If the task does not run because one before it failed, the
/// drop fails the run: its target would wait in vain.
pub(crate) struct SpawnedPut<T> {
    notifications: Notifications,
    to: KeptRemote<T>,
    id: u32,
    value: u32,
    issued: bool,
}

impl<T> SpawnedPut<T> {
    pub(crate) fn new(
        notifications: &Notifications,
        to: &RemoteRegion<'_, T>,
        (id, value): (u32, u32),
    ) -> Self {
        let (notifications, to) = (notifications.clone(), KeptRemote::new(to));
        SpawnedPut { notifications, to, id, value, issued: false }
    }

    pub(crate) fn issue<G: Source<Element = T>>(mut self, from: G) {
        self.issued = true;
        drop(self.notifications.put(from, self.to.region(), self.id, self.value));
    }
}

impl<T> Drop for SpawnedPut<T> {
    fn drop(&mut self) {
        if !self.issued {
            let (target, id) = (self.to.region().rank, self.id);
            self.notifications.fail(&Error::NotIssued { target, id });
        }
    }
}
