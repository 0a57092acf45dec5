//! Progress of a rank: batches are posted, cells that have arrived are taken, and operations that
//! wait for peers continue.

use std::sync::atomic::Ordering;

use talpf_primitives::MutexGuard;

use super::Verbs;
use super::deferred::DeferredActions;
use super::inbox::Inbox;
use super::transfers::Transfer;
use super::world::{RankState, World};
use crate::rank::WorldRank;

impl Verbs {
    /// Ends the burst and posts the batches, because a task waits or goes on to something else.
    #[inline]
    pub(super) fn flush_batches(&self) -> DeferredActions {
        let state = self.state();
        let mut deferred = DeferredActions::default();
        state.end_burst();
        if state.is_batching() {
            state.write_batch(&mut deferred);
        }
        deferred
    }

    /// Makes progress for the polling task, which posts only batches that no task adds to any more.
    pub(super) fn pass(&self) -> usize {
        let state = self.state();
        let mut deferred = DeferredActions::default();
        if state.is_batching() {
            state.write_idle_batch(&mut deferred);
        }
        match state.inbox.try_lock() {
            Some(mut inbox) => {
                let count = std::mem::take(&mut inbox.progressed_by_senders);
                count + self.progress_from(inbox, false, deferred)
            }
            None => {
                self.run_deferred(&mut deferred);
                0
            }
        }
    }

    #[inline]
    pub(super) fn try_progress(&self, mut deferred: DeferredActions) -> usize {
        match self.state().inbox.try_lock() {
            Some(inbox) => self.progress_from(inbox, false, deferred),
            None => {
                self.run_deferred(&mut deferred);
                0
            }
        }
    }

    #[inline]
    pub(super) fn run_deferred(&self, deferred: &mut DeferredActions) {
        self.world.run_deferred(self.state(), deferred);
    }

    #[inline]
    pub(super) fn progress_from(
        &self,
        inbox: MutexGuard<'_, Inbox>,
        wait_for_locks: bool,
        deferred: DeferredActions,
    ) -> usize {
        self.world.progress_from(self.state(), inbox, wait_for_locks, deferred)
    }
}

impl World {
    /// Runs the deferred actions. The caller holds no lock.
    #[inline]
    pub(super) fn run_deferred(&self, state: &RankState, deferred: &mut DeferredActions) {
        if !deferred.is_empty() {
            self.run_deferred_cold(state, deferred);
        }
    }

    #[cold]
    fn run_deferred_cold(&self, state: &RankState, deferred: &mut DeferredActions) {
        deferred.notify_waiters();
        let (transfers, mut failure) = deferred.take();
        if !transfers.is_empty() {
            self.transfer(state, transfers, deferred);
            failure = failure.or(deferred.take().1);
        }
        if let Some(error) = failure {
            self.fail(error);
        }
    }

    fn transfer(
        &self,
        state: &RankState,
        transfers: impl IntoIterator<Item = (WorldRank, Transfer)>,
        deferred: &mut DeferredActions,
    ) {
        for (peer, transfer) in transfers {
            if let Some(link) = state.link(peer) {
                state.transfers.fetch_add(1, Ordering::Relaxed);
                let mut transfers = link.transfers.lock();
                transfers.push(transfer);
                if let Some(error) = self.failure() {
                    transfers.fail(state, &error, deferred);
                } else {
                    transfers.run(link, state, deferred);
                }
            }
        }
        deferred.notify_waiters();
    }

    /// Takes the cells that have arrived and continues operations that wait for peers. With
    /// `wait_for_locks`, waits for another thread that does the latter, which may have polled already.
    #[inline]
    pub(super) fn progress_from(
        &self,
        state: &RankState,
        mut inbox: MutexGuard<'_, Inbox>,
        wait_for_locks: bool,
        mut deferred: DeferredActions,
    ) -> usize {
        let mut count = inbox.drain(state, &mut deferred);
        if !state.arrived.is_empty() {
            count += deferred.note(state.answer_doorbells(&mut inbox)).unwrap_or(0);
        }
        drop(inbox);
        if !state.is_quiet() {
            state.continue_operations(wait_for_locks, &mut deferred);
        }
        self.run_deferred(state, &mut deferred);
        count
    }

    /// Makes progress for a rank whose receives wait, in place of its polling task, for a rank that has
    /// sent it something. It is a hint: what is missed here, the polling task finds.
    ///
    /// Without it collectives go on only as polling tasks come round, slowly where ranks are more than workers.
    pub(super) fn progress_for(&self, receiver: WorldRank) {
        if self.is_distant || !self.is_oversubscribed {
            return;
        }
        let state = self.rank(receiver);
        if let Some(mut inbox) = state.inbox.try_lock()
            && inbox.matcher.waiting().0 > 0
        {
            inbox.progressed_by_senders += 1;
            self.progress_from(state, inbox, false, DeferredActions::default());
        }
    }
}

impl RankState {
    /// Continues operations that wait for room in rings or for completions of transfers.
    #[cold]
    fn continue_operations(&self, wait_for_locks: bool, deferred: &mut DeferredActions) {
        for link in self.links() {
            if self.transfers.load(Ordering::Relaxed) > 0 {
                let transfers = match wait_for_locks {
                    true => Some(link.transfers.lock()),
                    false => link.transfers.try_lock(),
                };
                if let Some(mut transfers) = transfers {
                    transfers.run(link, self, deferred);
                }
            }
            if self.queued.load(Ordering::Relaxed) > 0 {
                link.sender.lock().flush(link, self, deferred);
            }
        }
    }
}
