//! Inboxes: regions in which notified puts land, for the tasks that receive them.

use std::fmt;
use std::sync::Arc;

use talpf_primitives::Mutex;
use talpf_runtime::Region;

use super::Notification;
use super::of_rank::OfRank;
use crate::error::Error;
use crate::window::Area;

/// A region in which puts that come with notifications of one id land, for tasks that receive them:
/// [`NotifiedTask::inbox`](crate::NotifiedTask::inbox). Clones are handles of the same inbox. Made by
/// [`Notifications::inbox`](crate::Notifications::inbox).
pub struct Inbox<'r, T, D> {
    pub(super) notifications: OfRank,
    pub(super) region: Region<'r, T, D>,
    pub(super) area: Area,
    pub(super) id: u32,
    pub(super) last: Arc<Mutex<Option<Notification>>>,
}

impl<'r, T: Send + Sync, D> Inbox<'r, T, D> {
    pub(super) fn new(
        notifications: &OfRank,
        region: &Region<'r, T, D>,
        id: u32,
    ) -> Result<Self, Error> {
        notifications.table().check_id(id)?;
        let (area, notifications) = (notifications.area_of(region)?, notifications.clone());
        Ok(Inbox { notifications, region: *region, area, id, last: Arc::default() })
    }
}

impl<T, D> Inbox<'_, T, D> {
    /// Returns a function for the bodies of tasks that receive: it returns the notification that has
    /// brought the data, while the task holds the region.
    pub fn last(&self) -> impl Fn() -> Option<Notification> + Clone + Send + Sync + use<T, D> {
        let last = Arc::clone(&self.last);
        move || *last.lock()
    }
}

impl<T, D> Clone for Inbox<'_, T, D> {
    fn clone(&self) -> Self {
        let Inbox { notifications, region, area, id, last } = self;
        let (notifications, last) = (notifications.clone(), Arc::clone(last));
        Inbox { notifications, region: *region, area: *area, id: *id, last }
    }
}

impl<T, D> fmt::Debug for Inbox<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inbox of {} for notification {}", self.notifications.rank(), self.id)
    }
}
