//! Events of a device as a whole, for `tracing`: none for a work request or a poll.
//!
//! Without the feature `tracing` nothing is said, and without a subscriber nothing is heard.
#![cfg_attr(not(feature = "tracing"), expect(unused_variables, reason = "nothing is said"))]

use std::fmt::Debug;

/// Target of the device's events.
#[cfg(feature = "tracing")]
const TARGET: &str = "verbs";

/// Says that an asynchronous event was raised.
pub(crate) fn raises(process: u32, event: &dyn Debug) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: TARGET, process, ?event, "an asynchronous event");
}

/// Says that a process is lost.
pub(crate) fn loses(process: u32, reason: &dyn Debug) {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: TARGET, process, ?reason, "nothing more comes from a process");
}
