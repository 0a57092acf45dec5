//! Matcher: the queues of receives and of unexpected messages.

use super::key::{Key, Selection};
use super::lists::{EntryId, Lists};

/// Queues of receives (`R`) and unexpected messages (`M`).
pub(crate) struct Matcher<R, M> {
    receives: Lists<R, 1>,
    /// Number of receives with a wildcard.
    wild_receives: usize,
    messages: Lists<(Key, M), 4>,
    /// `true` once a selection with a wildcard was searched for: messages are in all four lists
    /// since then.
    indexes_wildcards: bool,
}

impl<R, M> Default for Matcher<R, M> {
    fn default() -> Self {
        Matcher {
            receives: Lists::default(),
            wild_receives: 0,
            messages: Lists::default(),
            indexes_wildcards: false,
        }
    }
}

impl<R, M> Matcher<R, M> {
    /// Removes the receive for a message that arrives: the first that was started.
    #[inline]
    pub(crate) fn take_receive(&mut self, key: &Key) -> Option<R> {
        let (first, is_wild) = self.first_receive(key)?;
        self.wild_receives -= usize::from(is_wild);
        self.receives.remove(first)
    }

    /// Returns `true` if no receive is queued for a message that arrives, and no earlier message
    /// with the same key.
    #[inline]
    pub(crate) fn is_alone(&mut self, key: &Key) -> bool {
        self.is_empty()
            || self.first_receive(key).is_none() && self.messages.first(&key.exact()).is_none()
    }

    /// Queues a message for which no receive is queued.
    #[inline]
    pub(crate) fn keep_message(&mut self, key: Key, message: M) {
        let id = self.messages.push(&key.exact(), (key, message));
        if self.indexes_wildcards {
            key.wild().iter().for_each(|selection| self.messages.append_to(id, selection));
        }
    }

    /// Removes the message for a receive that starts: the first that arrived.
    #[inline]
    pub(crate) fn take_message(&mut self, selection: &Selection) -> Option<(Key, M)> {
        let first = self.first_message(selection)?;
        self.messages.remove(first)
    }

    /// Returns the message that a receive would take.
    pub(crate) fn message(&mut self, selection: &Selection) -> Option<&(Key, M)> {
        let first = self.first_message(selection)?;
        self.messages.get(first)
    }

    /// Queues a receive for which no message is queued.
    #[inline]
    pub(crate) fn keep_receive(&mut self, selection: &Selection, receive: R) -> EntryId {
        self.wild_receives += usize::from(selection.has_wildcard());
        self.receives.push(selection, receive)
    }

    /// Removes a receive.
    pub(crate) fn cancel(&mut self, id: EntryId) -> Option<R> {
        let selection = self.receives.selection(id)?;
        let receive = self.receives.remove(id)?;
        self.wild_receives -= usize::from(selection.has_wildcard());
        Some(receive)
    }

    /// Returns a queued receive.
    pub(crate) fn receive_mut(&mut self, id: EntryId) -> Option<&mut R> {
        self.receives.get_mut(id)
    }

    /// Returns the last queued receive of a selection.
    pub(crate) fn last_receive(&self, selection: &Selection) -> Option<(EntryId, &R)> {
        self.receives.last(selection)
    }

    /// Returns `true` if a receive with a wildcard is queued.
    pub(crate) fn has_wild_receives(&self) -> bool {
        self.wild_receives > 0
    }

    /// Returns `true` if no receive and no message is queued.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.receives.is_empty() && self.messages.is_empty()
    }

    /// Returns the number of queued receives and messages.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        (self.receives.len(), self.messages.len())
    }

    /// Removes everything.
    pub(crate) fn drain(&mut self) -> (Vec<R>, Vec<M>) {
        self.wild_receives = 0;
        let messages = self.messages.drain().into_iter().map(|(_, message)| message);
        (self.receives.drain(), messages.collect())
    }

    /// Returns the receive that a message is for, and `true` if it has a wildcard.
    #[inline]
    fn first_receive(&mut self, key: &Key) -> Option<(EntryId, bool)> {
        let mut first = self.receives.first(&key.exact());
        let mut is_wild = false;
        if self.wild_receives > 0 {
            for selection in key.wild() {
                if let Some(found) = self.receives.first(&selection)
                    && first.is_none_or(|first| found.1 < first.1)
                {
                    (first, is_wild) = (Some(found), true);
                }
            }
        }
        first.map(|(id, _)| (id, is_wild))
    }

    #[inline]
    fn first_message(&mut self, selection: &Selection) -> Option<EntryId> {
        if self.messages.is_empty() {
            return None;
        }
        if selection.has_wildcard() && !self.indexes_wildcards {
            self.index_wildcards();
        }
        self.messages.first(selection).map(|(id, _)| id)
    }

    #[cold]
    fn index_wildcards(&mut self) {
        self.indexes_wildcards = true;
        let mut all: Vec<_> =
            self.messages.iter().map(|(id, stamp, (key, _))| (stamp, id, *key)).collect();
        all.sort_unstable_by_key(|(stamp, ..)| *stamp);
        for (_, id, key) in all {
            key.wild().iter().for_each(|selection| self.messages.append_to(id, selection));
        }
    }
}

#[cfg(all(test, not(talpf_loom)))]
#[path = "tests.rs"]
mod tests;
