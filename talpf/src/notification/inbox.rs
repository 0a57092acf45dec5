//! Inboxes: regions in which notified puts land, for the tasks that receive them.

use std::fmt;
use std::sync::Arc;

use talpf_runtime::Region;

use super::Notification;
use super::awaited::Awaited;
use super::of_rank::OfRank;
use crate::error::Error;

/// A region in which puts that come with notifications of one id land, for tasks that receive them:
/// [`NotifiedTask::inbox`](crate::NotifiedTask::inbox). Clones are handles of the same inbox. Made by
/// [`Notifications::inbox`](crate::Notifications::inbox).
pub struct Inbox<'r, T, D> {
    pub(super) region: Region<'r, T, D>,
    pub(super) awaited: Arc<Awaited>,
}

impl<'r, T: Send + Sync, D> Inbox<'r, T, D> {
    pub(super) fn new(
        notifications: &OfRank,
        region: &Region<'r, T, D>,
        id: u32,
    ) -> Result<Self, Error> {
        notifications.table().check_id(id)?;
        let area = notifications.area_of(region)?;
        Ok(Inbox { region: *region, awaited: Awaited::new(notifications, id, Some(area)) })
    }
}

impl<T, D> Inbox<'_, T, D> {
    /// Returns a function for the bodies of tasks that receive: it returns the notification that has
    /// brought the data, while the task holds the region.
    pub fn last(&self) -> impl Fn() -> Option<Notification> + Clone + Send + Sync + use<T, D> {
        let awaited = Arc::clone(&self.awaited);
        move || awaited.last()
    }
}

impl<T, D> Clone for Inbox<'_, T, D> {
    fn clone(&self) -> Self {
        Inbox { region: self.region, awaited: Arc::clone(&self.awaited) }
    }
}

impl<T, D> fmt::Debug for Inbox<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inbox of {} for notification {}", self.awaited.rank(), self.awaited.id())
    }
}
