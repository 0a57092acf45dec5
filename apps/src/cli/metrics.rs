//! Metrics of a runtime as JSON.

use std::time::Duration;

use serde_json::{Value, json};
use talpf::TicketCounts;
use talpf_runtime::Metrics;

/// Formats the metrics, with the tickets of ranks in several processes. **Units**: seconds for names that end in `_s`, nanoseconds for `_ns`.
pub(super) fn json(metrics: &Metrics, tickets: Option<TicketCounts>) -> Value {
    let queued = &metrics.queued;
    let delays = &metrics.delays;
    let classes = delays
        .classes()
        .map(|(below, count)| json!({ "below_ns": below.as_nanos() as u64, "count": count }));
    let mut json = json!({
        "tasks_created": metrics.created,
        "tasks_completed": metrics.completed,
        "made_ready": metrics.made_ready,
        "runs": metrics.runs,
        "poll_passes": metrics.poll_passes,
        "steals": metrics.steals,
        "parks": metrics.parks,
        "queued": {
            "next": queued.next,
            "own": queued.own,
            "shared": queued.shared,
            "priorities": queued.priorities,
        },
        "ready_to_run": {
            "sampled": delays.count(),
            "median_below_ns": delays.within(0.5).map(|below| below.as_nanos() as u64),
            "p99_below_ns": delays.within(0.99).map(|below| below.as_nanos() as u64),
            "classes": classes.collect::<Vec<_>>(),
        },
        "elapsed_s": metrics.elapsed.as_secs_f64(),
    });
    if let Some(TicketCounts { given, used, late, unused, .. }) = tickets {
        json["tickets"] = json!({ "given": given, "used": used, "late": late, "unused": unused });
    }
    // In virtual time the breakdown of the run has what cores did.
    if metrics.core_times.is_none() {
        json["idle_s"] = metrics.idle.iter().map(Duration::as_secs_f64).collect();
        json["idle_share"] = metrics.idle_share().into();
    }
    json
}
