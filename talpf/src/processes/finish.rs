//! The end of a run of several processes.
//!
//! A process whose programs have ended serves the others until theirs have ended too: they may read its
//! memory, and its failure would be theirs. It sends [`ControlMessage::Finished`] once it has the
//! answers to all its requests. Messages that it sends later, because a window has opened late, are
//! of no use to a rank that has finished, too.
//!
//! A process that knows that all have finished sends [`ControlMessage::Left`], and waits for that of the others:
//! as long as one of them may send, the end of this process may take messages with it that others have not
//! read. A connection of TCP that is closed with unread bytes is reset.
//!
//! If the run is traced, the clocks are read once all have finished.
//!
//! After a failure the others have [`LINGER`] to learn of it. In a run that hangs nobody runs tasks any more, and
//! tasks that are left keep what connects the processes: the thread of the program says that it has finished.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use talpf_runtime::Clock;

use super::control_message::ControlMessage;
use super::{Processes, RemotePeer};
use crate::error::Error;
use crate::numbers::Rank;
use crate::sync::Receiver;

/// Longest wait for the other ranks after a failure, and once all have finished.
const LINGER: Duration = Duration::from_secs(5);
const POLL_PERIOD: Duration = Duration::from_micros(100);

impl Processes {
    /// Sends that the ranks of this process have finished, and waits until all processes have, and know it.
    ///
    /// **Errors**: the run has failed meanwhile.
    pub(crate) async fn finish(&self, receivers: &[Arc<Receiver>]) -> Result<(), Error> {
        let Some(receiver) = receivers.first() else { return Ok(()) };
        self.peers.remotes().for_each(RemotePeer::end_tickets);
        let has_answers = |receiver: &Arc<Receiver>| receiver.has_all_answers();
        let is_done = || {
            self.peers.remotes().all(RemotePeer::has_posted_granted)
                && receivers.iter().all(has_answers)
        };
        while receiver.sender.error().is_none() && !is_done() {
            receiver.sender.group.wait_for(POLL_PERIOD).await;
        }
        if let Some(Error::PeerFailed { rank: first, reason }) = receiver.sender.error() {
            // The messages of the process that has failed may take longer than the next one.
            let reason = &reason;
            self.send_to_all(self.speaker(), ControlMessage::Failed { first, reason });
        }
        self.send_to_all(self.speaker(), ControlMessage::Finished);
        let group = &receiver.sender.group;
        let mut deadline_ns = None;
        let mut is_late = || {
            let now_ns = group.clock().now_ns();
            now_ns > *deadline_ns.get_or_insert(now_ns + LINGER.as_nanos() as u64)
        };
        let failure = loop {
            let failure = receiver.sender.error();
            // A rank that is lost and has not finished fails the run, once its messages were read.
            let is_over =
                |peer: &RemotePeer| peer.is_finished() || failure.is_some() && peer.has_vanished();
            let all_finished = self.peers.remotes().all(is_over);
            if all_finished && failure.is_none() {
                self.begin_readings(2);
            }
            let has_clocks = failure.is_some() || self.clocks.are_complete();
            if (all_finished || failure.is_some()) && is_late() || (all_finished && has_clocks) {
                break failure;
            }
            self.join_termination();
            group.wait_for(POLL_PERIOD).await;
        };
        self.send_to_all(self.speaker(), ControlMessage::Left);
        let all_left = || self.peers.remotes().all(RemotePeer::has_left);
        while (!all_left() || self.device.has_unsent()) && !is_late() {
            group.wait_for(POLL_PERIOD).await;
        }
        failure.map_or(Ok(()), Err)
    }

    /// Notes that another process has finished.
    pub(super) fn note_finished(&self, process: u32) {
        self.distribution.of(process).for_each(|rank| self.names.end(Rank(rank)));
        self.peers_of(process).for_each(RemotePeer::note_finished);
    }

    /// Iterates over the ranks of another process.
    pub(super) fn peers_of(&self, process: u32) -> impl Iterator<Item = &RemotePeer> {
        let ranks = self.distribution.of(process).map(Rank);
        ranks.filter_map(|rank| self.peers.remote(rank))
    }

    /// Sends that this process has finished and left, in a run that hangs, and waits until that is sent.
    pub(crate) fn finish_hung(&self, clock: &Clock) {
        self.send_to_all(self.speaker(), ControlMessage::Finished);
        self.send_to_all(self.speaker(), ControlMessage::Left);
        let start = clock.now();
        while self.device.has_unsent() && clock.now() - start < LINGER {
            self.progress();
            thread::yield_now();
        }
    }
}
