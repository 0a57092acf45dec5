//! Listeners: ends that take in the notifications of an id themselves, where a wait would take one.

use std::any::Any;

use super::Notification;

/// An end that takes in all notifications of one id, which no program names.
///
/// The notifications of one source come in the order in which they were sent.
pub(crate) trait Listener: Any + Send + Sync {
    /// Takes in a notification. Returns `true` if [`Listener::follow_up`] is to be called. Called
    /// under a lock, so it calls nobody.
    fn take(&self, notification: Notification) -> bool;
    /// Does what has become due: answers, and wakes the task that waits. Called under no lock, also
    /// once the run has failed.
    fn follow_up(&self);
    /// Adds what the end waits for to a hang report, if it waits.
    fn describe(&self, text: &mut String);
}
