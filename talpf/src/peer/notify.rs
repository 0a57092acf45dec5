//! Notification of a rank of this process that something was posted to it.
//!
//! A rank whose task is suspended until a sync ends polls for arrivals only when a worker has
//! nothing else to do and runs its polling task. So the thread that posts to it advances its sync
//! itself: counts what was posted, and wakes the task, on the spot. Where workers are fewer than
//! ranks a superstep is a sequence of such posts, and no worker polls without success in between.
//!
//! Notification is a hint: arrivals that a poster misses, the polling task finds.

use std::cell::{Cell, RefCell};
use std::ptr;

use super::{LocalPeer, Peer, Peers};
use crate::notification::Follows;
use crate::numbers::Rank;

thread_local! {
    /// The ranks of the run in which the thread makes progress for others, for comparison only; null
    /// while it does not.
    static INSIDE: Cell<*const Peer> = const { Cell::new(ptr::null()) };
    /// Ranks that were posted to meanwhile, for which it still has to make progress.
    static NEXT: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
}

impl Peers {
    /// Notifies `target` that something was posted to it. The caller holds no lock.
    #[inline]
    pub(crate) fn notify(&self, target: Rank) {
        if self.local(target).is_some_and(|peer| peer.wait_flag.is_set()) {
            self.progress_for(target);
        }
    }

    /// Notifies `target` that an operation outside rounds was posted to it, if a task of it waits for
    /// one. The caller holds no lock.
    #[inline]
    pub(crate) fn notify_waiting(&self, target: Rank) {
        let waits = |peer: &LocalPeer| peer.notifications.is_waiting() || peer.wait_flag.is_set();
        if self.local(target).is_some_and(waits) {
            self.progress_for(target);
        }
    }

    /// Returns `true` if this thread may end the waits of others: it makes no progress already, nor
    /// unwinds.
    #[inline]
    pub(crate) fn may_end_waits() -> bool {
        !std::thread::panicking() && INSIDE.get().is_null()
    }

    /// Runs the deferred actions of notifications of `target` that this thread has carried out. The
    /// caller holds no lock, and [`Peers::may_end_waits`] was `true`.
    #[inline]
    pub(super) fn follow_up_as_poster(&self, target: Rank, follows: &mut Follows) {
        if !follows.is_nothing() {
            self.progress_in_sequence(|| self.follow_up(target, follows));
        }
    }

    /// Makes progress for `target`. If that leads to further notifications (by control messages,
    /// retried operations, actions of tasks that become ready), they follow one after another, not
    /// nested.
    pub(crate) fn progress_for(&self, target: Rank) {
        if std::thread::panicking() {
            // Drops of a body that unwinds must not mix with guards of other tasks.
            return;
        }
        let inside = INSIDE.get();
        if inside.is_null() {
            self.progress_in_sequence(|| {
                self.local(target).into_iter().for_each(LocalPeer::progress)
            });
        } else if ptr::eq(inside, self.0.as_ptr()) {
            NEXT.with_borrow_mut(|next| {
                if !next.contains(&target) {
                    next.push(target);
                }
            });
        }
    }

    /// Calls `first`, and then makes progress for the ranks that this thread has posted to meanwhile.
    #[inline]
    fn progress_in_sequence(&self, first: impl FnOnce()) {
        INSIDE.set(self.0.as_ptr());
        let _leave = LeaveOnDrop;
        first();
        // As many as there are ranks: the polling tasks find what arrives after that.
        for _ in 1..self.len() {
            let target = NEXT.with_borrow_mut(|next| (!next.is_empty()).then(|| next.remove(0)));
            let Some(peer) = target.and_then(|rank| self.local(rank)) else {
                return;
            };
            peer.progress();
        }
    }
}

/// Ends the progress of a thread for others when dropped.
struct LeaveOnDrop;

impl Drop for LeaveOnDrop {
    #[inline]
    fn drop(&mut self) {
        INSIDE.set(ptr::null());
        NEXT.with_borrow_mut(Vec::clear);
    }
}
