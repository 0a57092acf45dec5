//! Private ids, which no program names: their listeners.

use std::sync::Arc;

use super::Notifications;
use super::follows::Follows;
use super::listener::Listener;
use super::state::State;
use super::table::NotificationTable;
use crate::numbers::Rank;
use crate::sender::RoundState;

impl NotificationTable {
    /// Returns the listener of a private id.
    pub(crate) fn listener(&self, id: u32) -> Option<Arc<dyn Listener>> {
        self.state.lock().ids.listener(id).cloned()
    }

    /// Removes the listener of a private id. What comes later is for nobody.
    pub(crate) fn remove_listener(&self, id: u32) {
        let removed = self.state.lock().ids.listener_mut(id).and_then(Option::take);
        drop(removed);
    }
}

impl State {
    /// Passes the notifications of an id that have arrived, in their order, to its listener.
    pub(super) fn pass_to_listener(&mut self, id: u32, follows: &mut Follows) {
        let listener = self.ids.listener(id).cloned();
        let of_id = self.ids.of(id);
        let mut is_due = false;
        while let Some(notification) = of_id.take_arrived() {
            is_due |= listener.as_ref().is_some_and(|listener| listener.take(notification));
        }
        let is_parked = !of_id.parked.is_empty();
        follows.listeners.extend(listener.filter(|_| is_due));
        if is_parked {
            self.admit_parked(id, follows);
        }
    }
}

impl Notifications {
    /// Adds a private id for a listener.
    pub(crate) fn add_listener(&self) -> u32 {
        self.0.table().state.lock().ids.add_listener()
    }

    /// Sets the listener of a private id, before a peer may notify it.
    pub(crate) fn set_listener(&self, id: u32, listener: Arc<dyn Listener>) {
        let mut state = self.0.table().state.lock();
        let before = state.ids.listener_mut(id).and_then(|place| place.replace(listener));
        drop(state);
        drop(before);
    }

    /// Removes the listener of a private id of this rank.
    pub(crate) fn remove_listener(&self, id: u32) {
        self.0.table().remove_listener(id);
    }

    /// Returns the listener of a private id of `rank`, if what is sent to it need not pass the device:
    /// a rank of this process in real time, and without a trace that would miss the message.
    pub(crate) fn direct(&self, rank: Rank, id: u32) -> Option<Arc<dyn Listener>> {
        let sender = self.0.sender();
        let peer = sender.peers.local(rank).filter(|_| sender.signals_directly)?;
        peer.notifications.listener(id)
    }

    /// Returns the round of operations outside rounds.
    #[inline]
    pub(crate) fn round(&self) -> &Arc<RoundState> {
        &self.0.round
    }
}
