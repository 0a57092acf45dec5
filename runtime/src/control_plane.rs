//! Events of a runtime as a whole, for `tracing`: none for a task, a record or a poll.
//!
//! Without the feature `tracing` nothing is said, and without a subscriber nothing is heard.

use crate::config::Config;
use crate::metrics::Metrics;

/// Target of the runtime's events.
#[cfg(feature = "tracing")]
const TARGET: &str = "talpf::runtime";

/// Says that a runtime begins, with its settings.
#[cfg(feature = "tracing")]
pub(crate) fn begins(config: &Config) {
    let (idle, traced) = (config.idle, config.recorder.is_some());
    let virtual_time = config.virtual_time.is_some();
    let (workers, throttle, hang_after) = (config.workers, config.throttle, config.hang_after);
    tracing::info!(
        target: TARGET, workers, %idle, throttle, ?hang_after, virtual_time, traced, "runtime begins"
    );
    if traced {
        tracing::debug!(target: TARGET, "records a trace");
    }
}

/// Says that a runtime has ended, with its counts.
#[cfg(feature = "tracing")]
pub(crate) fn ended(config: &Config, metrics: &Metrics) {
    let Metrics { created, completed, runs, steals, parks, elapsed, .. } = metrics;
    tracing::info!(
        target: TARGET, created, completed, runs, steals, parks, ?elapsed, "runtime has ended"
    );
    let dropped = config.recorder.as_ref().map_or(0, |recorder| recorder.dropped_count());
    if dropped > 0 {
        tracing::warn!(target: TARGET, dropped, "the trace lacks records: a stream was full");
    }
}

/// Says that the runtime hangs.
#[cfg(feature = "tracing")]
pub(crate) fn hangs(report: &str) {
    tracing::error!(target: TARGET, report, "the runtime hangs");
}

#[cfg(not(feature = "tracing"))]
pub(crate) fn begins(_: &Config) {}

#[cfg(not(feature = "tracing"))]
pub(crate) fn ended(_: &Config, _: &Metrics) {}

#[cfg(not(feature = "tracing"))]
pub(crate) fn hangs(_: &str) {}
