//! Notifications as their sources send them.

use crate::numbers::Rank;
use crate::window::Claim;

/// A notification that has come to this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The rank that has sent it.
    pub source: Rank,
    /// Id of the notification.
    pub id: u32,
    /// Value of the notification.
    pub value: u32,
}

/// A notification with the elements that are put first. A notification without a put has none, and
/// counts as one of a raw slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NotifiedClaim {
    pub(crate) notification: Notification,
    pub(crate) claim: Claim,
}

impl NotifiedClaim {
    /// Returns `true` if the notification needs an inbox.
    pub(super) fn needs_inbox(&self) -> bool {
        !self.claim.raw
    }
}
