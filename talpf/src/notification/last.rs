//! The last notification of one id that has let a task run, for the bodies of such tasks.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Notification;
use crate::numbers::Rank;

/// Source and value of the last notification.
#[derive(Debug)]
pub(crate) struct Last(AtomicU64);

/// No notification: no rank has the number of this source.
const NONE: u64 = u64::MAX;

impl Last {
    pub(super) fn new() -> Self {
        Last(AtomicU64::new(NONE))
    }

    /// Sets the last notification.
    #[inline]
    pub(super) fn set(&self, notification: Notification) {
        let Notification { source, value, .. } = notification;
        self.0.store(u64::from(source.0) << 32 | u64::from(value), Ordering::Release);
    }

    /// Returns the last notification, which is of this id.
    pub(super) fn get(&self, id: u32) -> Option<Notification> {
        let last = self.0.load(Ordering::Acquire);
        let notification =
            Notification { source: Rank((last >> 32) as u32), id, value: last as u32 };
        (last != NONE).then_some(notification)
    }
}
