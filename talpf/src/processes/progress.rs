//! Progress with other processes: passes that take in what they have sent, and the sleep between passes.

use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, fence};

use super::{Processes, Sleep, event_watch, loss};
use crate::control_plane;
use crate::error::Error;
use crate::numbers::Rank;
use crate::peer::LocalPeer;
use crate::window::Outcome;

impl Processes {
    /// Returns `true` if what other processes do is announced by an event.
    pub(crate) fn has_event(&self) -> bool {
        self.device.has_event()
    }

    /// Prepares the sleep of the polling task, which was announced. The caller has made progress since.
    pub(crate) fn prepare_sleep(&self) -> Sleep {
        if self.waits_for_progress() { Sleep::Naps } else { self.events.arm(&self.device) }
    }

    /// As [`Processes::prepare_sleep`], for a thread that sleeps on `epoll`.
    pub(super) fn prepare_sleep_on(&self, epoll: &OwnedFd) -> Sleep {
        if self.waits_for_progress() { Sleep::Naps } else { event_watch::arm(&self.device, epoll) }
    }

    /// Returns `true` if something waits for progress that no event announces.
    fn waits_for_progress(&self) -> bool {
        self.has_unposted.load(Ordering::Acquire) || self.attention.is_needed()
    }

    /// Makes progress, for a polling task or a thread of the program, unless a thread serves the other processes.
    /// Returns `true` if packets have arrived; `false` while another thread makes progress.
    pub(crate) fn progress(&self) -> bool {
        !self.has_thread && self.pass()
    }

    /// Leaves what waits for progress, and no event announces, to the thread that serves the other processes, if there is
    /// one.
    pub(crate) fn leave_to_thread(&self) {
        if self.has_thread && self.waits_for_progress() {
            self.events.wake();
        }
    }

    /// Makes progress, for the thread that serves the other processes, and advances the ranks that something has come
    /// for. Returns `true` if packets have arrived.
    pub(super) fn serve(&self) -> bool {
        let has_come = self.pass();
        self.with_news().for_each(|rank| self.peers.progress_for(rank));
        has_come
    }

    /// Handles what other processes have sent, and posts the operations that they have granted.
    /// Returns `true` if packets have arrived; `false` while another thread does this.
    fn pass(&self) -> bool {
        let Some(progressing) = self.progressing.try_lock() else {
            return false;
        };
        let taken = self.device.progress_and(|from, bytes| self.handle_message(from, bytes));
        self.events.note_progress();
        if let Err(error) = &taken {
            self.failure.fail(&[self.speaker()], &Error::Device(error.clone()));
        }
        if let Some(panic) = self.wire.as_ref().and_then(|wire| wire.panic()) {
            self.failure
                .fail_with_reason(self.speaker(), &format!("the wire has panicked: {panic}"));
        }
        if self.has_unposted.load(Ordering::Relaxed) {
            self.post_unposted();
        }
        if self.attention.take() {
            self.peers.remotes().for_each(|peer| peer.attend(&self.clock));
        }
        let losses = self.device.losses();
        if self.losses.load(Ordering::Relaxed) != losses {
            self.losses.store(losses, Ordering::Relaxed);
            self.take_losses();
        }
        let has_come = taken.is_ok_and(|packets| packets > 0);
        if has_come {
            self.ring_for_responses();
        }
        self.termination.note_pass();
        drop(progressing);
        if has_come {
            // Outside all locks, as the end of an operation wakes tasks, and may run some.
            let ended = std::mem::take(&mut *self.ended.lock());
            drop(ended);
            self.notify_others();
        }
        self.wake_rung();
        has_come
    }

    /// Fails the run if a process is lost before it has finished.
    #[cold]
    fn take_losses(&self) {
        for peer in self.peers.remotes() {
            if peer.has_vanished() && !self.failure.has_failed() {
                let reason = loss::reason(peer, &self.peers);
                control_plane::loses(peer.rank, &reason);
                self.failure.fail_with_reason(peer.rank, &reason);
            }
        }
    }

    /// Rings the doorbells of the ranks of this process whose syncs wait for responses, or whose operations for
    /// credit: some may have come.
    fn ring_for_responses(&self) {
        fence(Ordering::SeqCst);
        for peer in self.here() {
            peer.ring_for_credit();
            if peer.awaits_responses.take() {
                peer.ring_doorbell();
            }
        }
    }

    /// Wakes the polling tasks of the ranks of this process whose doorbells are rung: responses may have come
    /// for them, or a granted operation was posted, which no completion may announce.
    #[inline]
    fn wake_rung(&self) {
        self.here().filter(|peer| peer.doorbell.is_rung()).for_each(LocalPeer::wake_poller);
    }

    /// Notifies the ranks of this process that something has come for, except the only one, whose
    /// thread this is.
    fn notify_others(&self) {
        if self.distribution.here().len() == 1 {
            return;
        }
        self.with_news().for_each(|rank| self.peers.notify_waiting(rank));
    }

    /// Iterates over the ranks of this process that something has come for.
    fn with_news(&self) -> impl Iterator<Item = Rank> {
        let has_news =
            |peer: &&LocalPeer| !peer.endpoint.arrived.is_empty() || peer.doorbell.is_rung();
        self.here().filter(has_news).map(|peer| peer.rank)
    }

    /// Passes eager puts to the windows again that found no room in the queue pair.
    fn post_unposted(&self) {
        let mut unposted = self.unposted.lock();
        while let Some(put) = unposted.pop_front() {
            match self.peers.land(put.request, put.claim, true, put) {
                Outcome::Posted(_) | Outcome::Parked => {}
                Outcome::Retry(put) => return unposted.push_front(put),
                Outcome::Refused(put) => put.refuse(),
            }
        }
        self.has_unposted.store(false, Ordering::Release);
    }
}
