//! Making progress for a rank: what was collected leaves, what has come is taken, and what waits for
//! peers goes on.

use std::sync::atomic::Ordering;

use talpf_primitives::MutexGuard;

use super::Verbs;
use super::aftermath::Aftermath;
use super::inbox::Inbox;
use super::transfers::Transfer;
use crate::rank::WorldRank;

impl Verbs {
    /// A task waits, or turns to something else: what was collected leaves.
    #[inline]
    pub(super) fn begin_turn(&self) -> Aftermath {
        let state = self.state();
        let mut after = Aftermath::default();
        state.next_turn();
        if state.is_collecting() {
            state.write_collected(&mut after);
        }
        after
    }

    /// Does what was put off until no lock is held.
    #[inline]
    pub(super) fn settle(&self, after: &mut Aftermath) {
        if !after.is_empty() {
            self.settle_all(after);
        }
    }

    #[cold]
    fn settle_all(&self, after: &mut Aftermath) {
        after.complete();
        let (transfers, mut failure) = after.take();
        if !transfers.is_empty() {
            self.transfer(transfers, after);
            failure = failure.or(after.take().1);
        }
        if let Some(error) = failure {
            self.world.fail(error);
        }
    }

    fn transfer(
        &self,
        transfers: impl IntoIterator<Item = (WorldRank, Transfer)>,
        after: &mut Aftermath,
    ) {
        let state = self.state();
        for (peer, transfer) in transfers {
            if let Some(link) = state.link(peer) {
                state.transfers.fetch_add(1, Ordering::Relaxed);
                let mut transfers = link.transfers.lock();
                transfers.push(transfer);
                if let Some(error) = self.world.failure() {
                    transfers.fail(state, &error, after);
                } else {
                    transfers.run(link, state, after);
                }
            }
        }
        after.complete();
    }

    /// As `progress`, for the polling task, which leaves alone what a task is collecting.
    pub(super) fn pass(&self) -> usize {
        let state = self.state();
        let mut after = Aftermath::default();
        if state.is_collecting() {
            state.write_unchanged(&mut after);
        }
        self.try_progress(after)
    }

    #[inline]
    pub(super) fn try_progress(&self, mut after: Aftermath) -> usize {
        match self.state().inbox.try_lock() {
            Some(inbox) => self.progress_from(inbox, false, after),
            None => {
                self.settle(&mut after);
                0
            }
        }
    }

    /// Takes in what has come. `surely`: waits for whoever carries on what waits for peers; he may
    /// have looked already.
    #[inline]
    pub(super) fn progress_from(
        &self,
        mut inbox: MutexGuard<'_, Inbox>,
        surely: bool,
        mut after: Aftermath,
    ) -> usize {
        let state = self.state();
        let mut count = inbox.drain(state, &mut after);
        if !state.arrived.is_empty() {
            count += after.note(state.answer_bells(&mut inbox)).unwrap_or(0);
        }
        drop(inbox);
        if !state.is_quiet() {
            self.carry_on(surely, &mut after);
        }
        self.settle(&mut after);
        count
    }

    /// Carries on what waits for peers: room in rings, completions of transfers.
    #[cold]
    fn carry_on(&self, surely: bool, after: &mut Aftermath) {
        let state = self.state();
        for link in state.links() {
            if state.transfers.load(Ordering::Relaxed) > 0 {
                let transfers = match surely {
                    true => Some(link.transfers.lock()),
                    false => link.transfers.try_lock(),
                };
                if let Some(mut transfers) = transfers {
                    transfers.run(link, state, after);
                }
            }
            if state.staged.load(Ordering::Relaxed) > 0 {
                link.sender.lock().flush(link, state, after);
            }
        }
    }
}
