//! The ranks of a run, as each of them reaches the others.
//!
//! A [`Peer`] is local, in this process and reached through its memory, or remote, and reached by
//! control messages. That is decided once, when the peer is made: everything else asks a peer for a
//! window, notifies it, or asks for what has landed, and need not know. A new kind of peer is one
//! more variant here.
//!
//! A local peer has what other threads may touch of a rank: its endpoint, its windows, and the
//! flags by which its engine is asked for progress. The engine itself is reached through
//! [`Engine`], which the receiver of the rank implements.

mod local;
mod notify;

use std::mem::take;
use std::sync::Arc;

use crate::error::Error;
use crate::notification::{Follows, Lists, NotifiedClaim};
use crate::numbers::{LaneNumber, Rank, Round};
use crate::processes::{RemotePeer, WindowRequest};
use crate::window::{Claim, Freed, Landing, Outcome, Parked, Rest, TravelTogether};

pub(crate) use self::local::{Engine, LocalPeer};

/// A rank of the run. On cache lines of its own, as threads of all ranks read it.
#[repr(align(128))]
pub(crate) enum Peer {
    /// A rank of this process.
    Local(Arc<LocalPeer>),
    /// A rank of another process.
    Remote(RemotePeer),
}

/// All ranks of a run, by number. Clones are handles of the same ranks.
#[derive(Clone)]
pub(crate) struct Peers(Arc<[Peer]>);

impl Peers {
    pub(crate) fn new(peers: impl Iterator<Item = Peer>) -> Self {
        Peers(peers.collect())
    }

    /// Returns the number of ranks.
    pub(crate) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Returns a rank of this process; `None` if it is remote.
    #[inline]
    pub(crate) fn local(&self, rank: Rank) -> Option<&LocalPeer> {
        match &self.0[rank.index()] {
            Peer::Local(peer) => Some(peer),
            Peer::Remote(_) => None,
        }
    }

    /// Returns a rank of another process; `None` if it is local.
    #[inline]
    pub(crate) fn remote(&self, rank: Rank) -> Option<&RemotePeer> {
        match &self.0[rank.index()] {
            Peer::Local(_) => None,
            Peer::Remote(peer) => Some(peer),
        }
    }

    /// Iterates over the ranks of this process.
    pub(crate) fn locals(&self) -> impl Iterator<Item = &Arc<LocalPeer>> {
        self.0.iter().filter_map(|peer| match peer {
            Peer::Local(peer) => Some(peer),
            Peer::Remote(_) => None,
        })
    }

    /// Iterates over the ranks of other processes.
    pub(crate) fn remotes(&self) -> impl Iterator<Item = &RemotePeer> {
        self.0.iter().filter_map(|peer| match peer {
            Peer::Local(_) => None,
            Peer::Remote(peer) => Some(peer),
        })
    }

    /// Iterates over the remote ranks of which nothing arrives at `own` any more.
    pub(crate) fn finished(&self, own: Rank) -> impl Iterator<Item = Rank> {
        let has_one = self.remotes().next().is_some_and(RemotePeer::has_one_finished);
        let remotes = has_one.then(|| self.remotes()).into_iter().flatten();
        remotes.filter(move |peer| peer.has_nothing_left(own)).map(|peer| peer.rank)
    }

    /// Returns `true` if a thread that posts to `target` carries that out itself, so that several
    /// operations are posted as one and a long one needs no completion.
    #[inline]
    pub(crate) fn shares_memory_with(&self, target: Rank) -> bool {
        self.local(target).is_some()
    }

    /// Returns `true` if `target` grants each operation, which then announces itself as granted.
    #[inline]
    pub(crate) fn is_granting(&self, target: Rank) -> bool {
        self.remote(target).is_some()
    }

    /// Returns `true` if data that is posted to `target`, of another process, is usually copied in the post, before
    /// the target takes the notice.
    pub(crate) fn is_mapped(&self, target: Rank) -> bool {
        self.remote(target).is_some_and(|peer| peer.is_mapped)
    }

    /// Notes that an operation of `source`, which was granted, has arrived at `own`.
    pub(crate) fn note_granted_arrival(&self, source: Rank, own: Rank) {
        if let Some(peer) = self.remote(source) {
            peer.note_arrival(own);
        }
    }

    /// Returns `true` if a rank has ended and needs nothing more.
    pub(crate) fn is_finished(&self, rank: Rank) -> bool {
        self.remote(rank).is_some_and(RemotePeer::is_finished)
    }

    /// Returns `true` if a rank has ended a round with a sync, as far as this process knows.
    #[cold]
    pub(crate) fn has_ended(&self, rank: Rank, lane: LaneNumber, round: Round) -> bool {
        self.local(rank).is_some_and(|peer| peer.has_ended(lane, round))
    }

    /// Returns `true` if every request of `source` to `target` was carried out.
    #[inline]
    pub(crate) fn has_landed(&self, source: Rank, target: Rank) -> bool {
        match &self.0[source.index()] {
            Peer::Local(peer) => peer.endpoint.is_drained(target),
            Peer::Remote(peer) => peer.has_landed(target) && self.has_written(target),
        }
    }

    /// Returns `true` if a rank has written the eager puts that it has let in: every request to itself
    /// was carried out.
    #[cold]
    fn has_written(&self, own: Rank) -> bool {
        self.local(own).is_none_or(|peer| peer.endpoint.is_drained(own))
    }

    /// Passes an operation to the windows of its target. A `quick` one is posted under a lock.
    #[inline]
    pub(crate) fn land<L: Landing>(
        &self,
        request: WindowRequest,
        claim: Claim,
        quick: bool,
        operation: L,
    ) -> Outcome<L> {
        let WindowRequest { target, lane, round } = request;
        let peer = match &self.0[target.index()] {
            Peer::Local(peer) => peer,
            Peer::Remote(peer) => {
                let outcome = peer.request_window(request, claim, operation);
                if matches!(outcome, Outcome::Parked) && peer.needs_pass() {
                    // It may wait for a ticket, which nothing announces if none comes.
                    peer.wake_thread();
                    self.local(claim.source).into_iter().for_each(LocalPeer::wake_poller);
                }
                return outcome;
            }
        };
        let has_landed = |source| self.has_landed(source, target);
        let (outcome, freed) = peer.windows.land(lane, round, claim, quick, operation, &has_landed);
        self.run_deferred(target, freed);
        if matches!(outcome, Outcome::Parked) {
            peer.wake_poller_if_delayed();
        }
        outcome
    }

    /// Passes an operation outside rounds, whose bytes `writer` writes, to the notifications of its
    /// target. A `quick` one is posted under a lock.
    #[inline]
    pub(crate) fn land_notified<L: Landing>(
        &self,
        target: Rank,
        notified: NotifiedClaim,
        writer: Rank,
        quick: bool,
        operation: L,
    ) -> Outcome<L> {
        match &self.0[target.index()] {
            Peer::Local(peer) => {
                let mut follows = Follows::default();
                let outcome =
                    peer.notifications.land(notified, writer, quick, operation, &mut follows);
                self.follow_up_as_poster(target, &mut follows);
                if matches!(outcome, Outcome::Parked) {
                    peer.wake_poller_if_delayed();
                }
                outcome
            }
            Peer::Remote(peer) => peer.request_inbox(notified, operation),
        }
    }

    /// Runs the deferred actions of the notifications of `target`: ends waits, posts operations that
    /// may land, refuses others, and retries those of sources that have credit again. The caller
    /// holds no lock. Leaves none.
    #[inline]
    pub(crate) fn follow_up(&self, target: Rank, follows: &mut Follows) {
        if !follows.is_nothing()
            && let Some(peer) = self.local(target)
        {
            if follows.only_ends() {
                follows.end_waits();
            } else {
                self.follow_up_slow(peer, follows);
            }
            if peer.notifications.has_delayed() {
                peer.wake_poller();
            }
        }
    }

    #[cold]
    fn follow_up_slow(&self, peer: &LocalPeer, follows: &mut Follows) {
        while !follows.is_nothing() {
            let Lists { admitted, refused, sources } = follows.take_lists();
            let has_posted = !admitted.is_empty();
            for mut admitted in admitted {
                let post = admitted.operation.post();
                peer.notifications.end_to_post(admitted, post, follows);
            }
            if has_posted {
                self.notify_waiting(peer.rank);
            }
            follows.end_waits();
            refused.into_iter().for_each(Parked::refuse);
            // Remote ranks count their credit themselves.
            sources.iter().filter_map(|rank| self.local(*rank)).for_each(LocalPeer::resume);
        }
    }

    /// Returns `true` if short puts of `source` to `target` that are retried are passed to its windows
    /// together.
    pub(crate) fn takes_together(&self, source: Rank, target: Rank) -> bool {
        match &self.0[target.index()] {
            Peer::Local(_) => true,
            Peer::Remote(peer) => peer.takes_together(source),
        }
    }

    /// Passes short puts of one source to the windows of their target. Those to a remote one are
    /// posted by being sent.
    pub(crate) fn land_together(
        &self,
        request: WindowRequest,
        operations: &impl TravelTogether,
    ) -> Rest {
        let WindowRequest { target, lane, round } = request;
        match &self.0[target.index()] {
            Peer::Local(peer) => {
                let has_landed = |source| self.has_landed(source, target);
                let mut rest = peer.windows.land_together(lane, round, operations, &has_landed);
                self.run_deferred(target, take(&mut rest.freed));
                if rest.has_parked {
                    peer.wake_poller_if_delayed();
                }
                rest
            }
            Peer::Remote(peer) => peer.send_together(request, operations),
        }
    }

    /// Returns the number of times that a window of `target`, if it is local, has opened while a peer
    /// waited for one, wrapping.
    #[inline]
    pub(crate) fn opened(&self, target: Rank) -> u32 {
        self.local(target).map_or(0, |peer| peer.windows.opened())
    }

    /// Notes an operation without a window that is about to be posted to a rank of this process,
    /// which checks for conflicts.
    #[cold]
    pub(crate) fn note(&self, target: Rank, lane: LaneNumber, round: Round, claim: Claim) {
        if let Some(peer) = self.local(target) {
            peer.windows.note(lane, round, claim);
        }
    }

    /// Checks that `source` may be in `round` by now, in the process of `target`. A remote target
    /// checks for itself.
    ///
    /// **Errors**: `source` is too far ahead.
    #[cold]
    pub(crate) fn check_ahead(
        &self,
        target: Rank,
        source: Rank,
        lane: LaneNumber,
        round: Round,
    ) -> Result<(), Error> {
        match self.local(target) {
            Some(peer) => peer.windows.check_ahead((target, source), lane, round),
            None => Ok(()),
        }
    }

    /// Runs the deferred actions of the windows of `target`: posts the operations that they have
    /// admitted, and retries those of sources that have credit again. The caller holds no lock.
    /// Returns `true` if something has changed, and not only been tried.
    #[inline]
    pub(crate) fn run_deferred(&self, target: Rank, freed: Freed) -> bool {
        !freed.is_nothing() && self.run_deferred_slow(target, freed)
    }

    #[cold]
    fn run_deferred_slow(&self, target: Rank, freed: Freed) -> bool {
        let has_landed = |source| self.has_landed(source, target);
        let Some(peer) = self.local(target) else {
            return false;
        };
        let freed = peer.windows.post_admitted(freed, &has_landed);
        for (source, number) in freed.recalled() {
            self.remote(*source).into_iter().for_each(|to| to.recall_ticket(target, *number));
        }
        if peer.windows.has_delayed() {
            peer.wake_poller();
        }
        // Remote ranks count their credit themselves.
        freed.sources().iter().filter_map(|rank| self.local(*rank)).for_each(LocalPeer::resume);
        freed.has_progress()
    }
}
