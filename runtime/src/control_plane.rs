//! Events of a runtime as a whole, for `tracing`: none for a task, a record or a poll.
//!
//! Without the feature `tracing` nothing is said, and without a subscriber nothing is heard.
#![cfg_attr(not(feature = "tracing"), expect(unused_variables, reason = "nothing is said"))]

use crate::config::Config;
use crate::metrics::Metrics;

/// Target of the runtime's events.
#[cfg(feature = "tracing")]
const TARGET: &str = "talpf::runtime";

/// Says that a runtime begins, with its settings.
pub(crate) fn begins(config: &Config) {
    #[cfg(feature = "tracing")]
    tracing::info!(
        target: TARGET,
        workers = config.workers,
        idle = %config.idle,
        throttle = config.throttle,
        hang_after = ?config.hang_after,
        virtual_time = config.virtual_time.is_some(),
        traced = config.recorder.is_some(),
        "runtime begins"
    );
}

/// Says that a runtime has ended, with its counts.
pub(crate) fn ended(config: &Config, metrics: &Metrics) {
    #[cfg(feature = "tracing")]
    {
        let Metrics { created, completed, runs, steals, parks, elapsed, .. } = metrics;
        tracing::info!(
            target: TARGET, created, completed, runs, steals, parks, ?elapsed, "runtime has ended"
        );
        let dropped = config.recorder.as_ref().map_or(0, |recorder| recorder.dropped_count());
        if dropped > 0 {
            tracing::warn!(target: TARGET, dropped, "the trace lacks records: a stream was full");
        }
    }
}

/// Says that the runtime hangs.
pub(crate) fn hangs(report: &str) {
    #[cfg(feature = "tracing")]
    tracing::error!(target: TARGET, report, "the runtime hangs");
}
