//! Reports of what the syncs of a rank wait for.

use std::fmt::Write;

use talpf_traces::counted;

use super::engine::State;
use super::lane_state::expected_from;
use super::receiver::Receiver;
use crate::numbers::Rank;

impl Receiver {
    /// Adds what the syncs of this rank wait for to a hang report.
    pub(crate) fn report_hang(&self, text: &mut String) {
        let absent = self.absent();
        self.with_state(|state| state.describe(&absent, text));
        self.own().notifications.describe(text);
        for peer in self.sender.peers.remotes() {
            peer.describe_inbox_requests(self.rank(), text);
        }
        for (source, count) in self.own().windows.parked() {
            let operations = counted(count, "operation");
            let _ = writeln!(text, "  {}: keeps {operations} of {source} parked", self.rank());
        }
        for (source, count) in self.own().windows.recalled_tickets() {
            let (rank, tickets) = (self.rank(), counted(count, "ticket"));
            let _ = writeln!(text, "  {rank}: waits for {source} to use or return {tickets}");
        }
    }
}

impl State {
    fn describe(&mut self, absent: &[Vec<Rank>], text: &mut String) {
        let (plan, rank) = (self.plan, self.rank);
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            let Some(sync) = lane.syncs.front() else {
                continue;
            };
            let round = sync.round.number;
            let _ = write!(text, "  {rank}: sync({}) of lane {number} {round} ", sync.mode);
            if let Some(arrivals) = lane.arrivals.round(round) {
                let expects = |rank| expected_from(rank, sync.mode, &lane.pattern, arrivals);
                let absent = absent.get(number).map_or(&[][..], Vec::as_slice);
                sync.describe(arrivals, expects, (absent, &plan), text);
            }
            text.push('\n');
        }
    }
}
