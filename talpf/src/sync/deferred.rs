//! Deferred actions of a pass of the engine.

use smallvec::SmallVec;

use super::active_sync::ActiveSync;
use crate::error::Error;
use crate::notification::Follows;
use crate::numbers::Rank;
use crate::operation::Done;
use crate::sender::Sender;
use crate::window::{EndedRound, Freed};

/// Actions that follow once the engine's lock is released. Usually none, or the end of a sync.
#[derive(Default)]
pub(super) struct Deferred {
    /// The sync that has ended: one at most in a pass.
    pub(super) ended: Option<(ActiveSync, Result<(), Box<Error>>)>,
    /// Windows of the round that has ended.
    pub(super) over: Option<EndedRound>,
    /// Operations that windows have admitted late, and what others have freed.
    pub(super) settled: Freed,
    /// Actions of the notifications that have arrived, if there were any.
    pub(super) notified: Option<Follows>,
    pub(super) to_notify: ToNotify,
    /// `true` if a sync waits for something that brings no completion.
    pub(super) again: bool,
    pub(super) done: Vec<(Done, Result<(), Error>)>,
    pub(super) failures: Vec<(Vec<Rank>, Error)>,
}

impl Deferred {
    /// Runs the actions, and leaves none.
    #[inline]
    pub(super) fn run(&mut self, sender: &Sender) {
        if !self.done.is_empty() {
            self.done.drain(..).for_each(|(done, result)| done(result));
        }
        let freed = self.over.take().map(EndedRound::release);
        // Before the end of the sync, so that a main which ends with its error is not the first to
        // fail the run.
        if !self.failures.is_empty() {
            self.failures
                .drain(..)
                .for_each(|(ranks, error)| sender.run_failure.fail(&ranks, &error));
        }
        if let Some((sync, result)) = self.ended.take() {
            sync.end(result.map_err(|error| *error), sender);
        }
        if sender.peers.run_deferred(sender.rank(), std::mem::take(&mut self.settled)) {
            // Operations that have landed have arrived: the thread inside makes another pass.
            sender.own.ring_doorbell();
        }
        if let Some(freed) = freed {
            sender.peers.run_deferred(sender.rank(), freed);
        }
        if !self.to_notify.0.is_empty() {
            let targets = std::mem::take(&mut self.to_notify.0);
            targets.into_iter().for_each(|target| sender.peers.notify(target));
        }
        if let Some(mut follows) = self.notified.take() {
            sender.peers.follow_up(sender.rank(), &mut follows);
        }
        if sender.has_unannounced_retries() {
            sender.try_again();
        }
    }
}

/// Ranks of this process that a pass has sent to, which are to be notified.
#[derive(Default)]
pub(super) struct ToNotify(SmallVec<[Rank; 8]>);

impl ToNotify {
    /// Adds a rank. One that is added twice polls once too often.
    #[inline]
    pub(super) fn add(&mut self, rank: Rank) {
        if self.0.last() != Some(&rank) {
            self.0.push(rank);
        }
    }
}
