//! The notifications of queues, under ids that no program names.

use std::collections::VecDeque;
use std::sync::Arc;

use super::follows::Follows;
use super::of_rank::Awaits;
use super::table::NotificationTable;
use super::{Notification, Notifications, Wait};
use crate::numbers::Rank;
use crate::sender::RoundState;

impl NotificationTable {
    /// Takes the first notifications of an id, as far as they have arrived and no wait has taken
    /// them.
    fn take_arrived(&self, id: u32, taken: &mut VecDeque<Notification>, follows: &mut Follows) {
        let mut state = self.state.lock();
        if !state.ids.has_private(id) {
            // The run has ended.
            return;
        }
        let of_id = state.ids.of(id);
        while let Some(notification) = of_id.take_arrived() {
            taken.push_back(notification);
        }
        if !of_id.parked.is_empty() {
            state.admit_parked(id, follows);
        }
    }
}

impl Notifications {
    /// Adds the ids of a queue of `receiver`, of whose items at most `most` are announced and not
    /// taken. Returns that of its items, which that of its credits follows.
    pub(crate) fn add_queue(&self, receiver: Rank, most: usize) -> u32 {
        self.0.table().state.lock().ids.add_queue(receiver, most)
    }

    /// Takes the notifications of a queue's id that have come, in their order, without a wait.
    ///
    /// **Cost**: a lock.
    #[inline]
    pub(crate) fn take_arrived(&self, id: u32, taken: &mut VecDeque<Notification>) {
        let mut follows = Follows::default();
        self.0.table().take_arrived(id, taken, &mut follows);
        self.0.follow_up(&mut follows);
    }

    /// As [`Notifications::take_arrived`], and polls for them while the worker has nothing else to do.
    /// Peers do not make progress for this rank meanwhile, as they would for a wait.
    pub(crate) fn poll_arrived(&self, id: u32, taken: &mut VecDeque<Notification>) {
        let table = self.0.table();
        let unawaited = table.unawaited();
        self.take_arrived(id, taken);
        if taken.is_empty() {
            let has_more = || (table.unawaited() != unawaited).then_some(());
            self.round().poll_while_spare(has_more);
            self.take_arrived(id, taken);
        }
    }

    /// Waits for a notification of a queue's id, as [`Notifications::wait`].
    pub(crate) fn wait_for_queue(&self, id: u32) -> Wait {
        Wait::new(&self.0, Awaits::One(id, None))
    }

    /// Returns the round of operations outside rounds.
    #[inline]
    pub(crate) fn round(&self) -> &Arc<RoundState> {
        &self.0.round
    }
}
