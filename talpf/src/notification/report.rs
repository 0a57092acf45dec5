//! Reports of the waits of a rank, and of puts that wait for it: in hangs, and at the end of a run.

use std::fmt::Write;

use talpf_traces::counted;

use super::Notification;
use super::id::Waiting;
use super::table::NotificationTable;
use crate::error::Error;
use crate::numbers::Rank;

impl NotificationTable {
    /// Checks that every notified put was received, once all programs have ended.
    ///
    /// **Errors**: one that is still parked.
    pub(crate) fn check_received(&self) -> Result<(), Error> {
        let state = self.state.lock();
        let mut parked = state.ids.each().flat_map(|(_, of_id)| &of_id.parked);
        let not_received = |waiting: &Waiting| {
            let Notification { source, id, .. } = waiting.notified.notification;
            Error::NotReceived { source_rank: source, target: self.rank, id }
        };
        parked.find(|waiting| waiting.notified.needs_inbox()).map(not_received).map_or(Ok(()), Err)
    }

    /// Adds what this rank waits for, and what waits for it, to a hang report.
    pub(crate) fn describe(&self, text: &mut String) {
        let (state, rank) = (self.state.lock(), self.rank);
        for (id, of_id) in state.ids.each() {
            let count = of_id.waiters.len();
            if count > 0 {
                let waits = if of_id.waiters[0].inbox.is_some() { "put with " } else { "" };
                let times = if count > 1 { format!(", {count} times") } else { String::new() };
                let _ = writeln!(text, "  {rank}: waits for a {waits}notification {id}{times}");
            }
            let mut sources: Vec<Rank> =
                of_id.parked.iter().map(|waiting| waiting.notified.notification.source).collect();
            sources.sort_unstable();
            for same in sources.chunk_by(|one, other| one == other) {
                let operations = counted(same.len(), "operation");
                let _ = writeln!(
                    text,
                    "  {}: waits for {rank} to receive notification {id} ({operations} parked)",
                    same[0]
                );
            }
        }
        state.ids.listeners().for_each(|listener| listener.describe(text));
        for (ids, _) in &state.any {
            let _ = writeln!(text, "  {rank}: waits for any of the notifications {ids:?}");
        }
    }
}
