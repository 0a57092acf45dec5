//! Transport over the verbs of `ibverbs-sim`. The README beside this file describes the protocols.
//!
//! Locks are taken in this order: `inbox` of a rank, `transfers` of a link, `sender` of a link. No
//! lock is held while waiters of operations are notified, because that may run code of tasks.
#![allow(unsafe_code, reason = "takes over the memory that callers of a transport vouch for")]

mod cell;
mod credits;
mod deferred;
mod footprint;
mod inbox;
mod link;
mod memory;
mod polling;
mod progress;
mod ring;
mod ring_buffer;
mod ring_writer;
mod rtr_table;
mod send_request;
mod sender;
mod sleep;
mod slots;
#[cfg(test)]
mod tests;
mod transfers;
mod waiting;
mod world;

pub(crate) use self::footprint::connections_bytes;
pub(crate) use self::world::LONGEST_EAGER;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use talpf_primitives::MutexGuard;
use talpf_runtime::service::{Pace, serve};
use talpf_runtime::{ByteLayout, EventSource, Group};

use self::cell::INLINE;
use self::deferred::DeferredActions;
use self::inbox::Inbox;
use self::link::Link;
use self::memory::Memory;
use self::polling::{LinkEvents, Poller};
use self::rtr_table::ContextTag;
use self::send_request::{SendBuffer, SendRequest, ShortSend};
use self::waiting::Receive;
use self::world::{RankState, World};
use super::{
    ContextId, Members, MessageId, OperationId, Outgoing, Probed, SendMode, Start, Transport,
    Wanted,
};
use crate::config::Config;
use crate::error::Error;
use crate::matching::{EntryId, Key, Selection};
use crate::protocols::Protocols;
use crate::rank::{Rank, WorldRank};
use crate::select::Select;
use crate::statistics::Statistics;
use crate::ticket::ticket;

/// Transport of one rank over verbs. Requests under way change the reference count beside it, so no
/// two ranks share a cache line.
#[repr(align(128))]
pub(crate) struct Verbs {
    world: Arc<World>,
    rank: WorldRank,
}

/// Transports of all ranks of a run in this process. Dropping it ends the polling tasks.
pub(crate) struct VerbsWorld {
    ranks: Vec<Arc<Verbs>>,
}

impl VerbsWorld {
    /// Creates a transport and a polling task for the rank of each group.
    ///
    /// **Errors**: those of the device and of the runtime.
    pub(crate) fn new(
        config: &Config,
        protocols: Protocols,
        groups: Vec<Group>,
    ) -> Result<Self, Error> {
        let count = groups.len() as u32;
        let world = World::new(config, protocols, groups)?;
        let of_rank = |rank| Arc::new(Verbs { world: Arc::clone(&world), rank: WorldRank(rank) });
        let ranks: Vec<_> = (0..count).map(of_rank).collect();
        let started = VerbsWorld { ranks };
        for verbs in &started.ranks {
            let group = &verbs.state().group;
            let pace = match config.polling.filter(|_| group.is_virtual()) {
                Some(period) => Pace::Naps { least: period, most: period },
                None => Pace::Adaptive,
            };
            let polling = serve(group.clone(), Poller(Arc::clone(verbs)), pace);
            drop(group.spawn_service("poll", polling)?);
        }
        Ok(started)
    }

    pub(crate) fn ranks(&self) -> impl Iterator<Item = Arc<dyn Transport>> {
        self.ranks.iter().map(|verbs| Arc::clone(verbs) as Arc<dyn Transport>)
    }

    /// Returns the link, as the executor of virtual time moves it.
    pub(crate) fn link_events(&self) -> Arc<dyn EventSource> {
        let world = self.ranks.first().map(|verbs| Arc::clone(&verbs.world));
        Arc::new(LinkEvents { world })
    }

    /// Ends the operations that are left, when no task runs any more.
    pub(crate) fn clear(&self) {
        if let Some(verbs) = self.ranks.first() {
            verbs.world.end_all(&Error::Abandoned);
        }
    }

    /// Lets the polling tasks end, once the programs of all ranks have ended.
    pub(crate) fn stop(&self) {
        for verbs in &self.ranks {
            verbs.state().stop.store(true, Ordering::SeqCst);
            verbs.state().poller.wake();
        }
    }
}

impl Drop for VerbsWorld {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Verbs {
    #[inline]
    fn state(&self) -> &RankState {
        self.world.rank(self.rank)
    }

    /// Finishes the start of a receive that has found its message.
    #[inline]
    fn finish_start(
        &self,
        inbox: MutexGuard<'_, Inbox>,
        deferred: &mut DeferredActions,
        start: Start,
    ) -> Start {
        drop(inbox);
        self.state().end_burst();
        self.run_deferred(deferred);
        start
    }

    /// Returns the link and the envelope for the RTR of a long receive, if it has one source and
    /// one tag.
    fn source_for_rtr(
        &self,
        wanted: &Wanted,
        memory: &Memory,
    ) -> Result<Option<(&Link, ContextTag)>, Error> {
        let Wanted { context, source, tag, .. } = *wanted;
        match (source, tag) {
            (Select::Only(peer), Select::Only(tag)) if !memory.has_short_rows() => {
                let link = self.world.link(self.rank, peer.world)?;
                Ok(Some((link, ContextTag { context, tag })))
            }
            _ => Ok(None),
        }
    }
}

/// Polls for an awaited short message before its receive is queued: taking the message from its
/// cell is cheaper than a notification.
const SPINS: u32 = 16;

#[inline]
fn selection(wanted: &Wanted) -> Selection {
    let source = match wanted.source {
        Select::Any => Select::Any,
        Select::Only(peer) => Select::Only(peer.rank),
    };
    Selection::new(wanted.context, source, wanted.tag)
}

impl Transport for Verbs {
    #[inline]
    unsafe fn send(&self, message: &Outgoing, bytes: ByteLayout) -> Start {
        let link = match self.world.link(self.rank, message.destination.world) {
            Ok(link) => link,
            Err(error) => return Start::failed(error),
        };
        let Outgoing { context, source, tag, mode, .. } = *message;
        let key = Key { context, source, tag };
        // SAFETY: the promise of the caller.
        let memory = unsafe { Memory::new(bytes) };
        let status = key.status(memory.bytes());
        let mut sender = link.sender.lock();
        if let Some(error) = self.world.failure() {
            return Start::failed(error);
        }
        if mode != SendMode::Synchronous
            && let Some(bytes) = memory.contiguous()
        {
            match sender.send_short(link, self.state(), &key, bytes) {
                Ok(ShortSend::NotSent) => {}
                Ok(ShortSend::Sent) => return Start::Ended(Ok(status.into())),
                Ok(ShortSend::BatchOpened) => return Start::Batched(status.into()),
                Ok(ShortSend::Alone) => {
                    drop(sender);
                    self.state().poller.wake();
                    return Start::Ended(Ok(status.into()));
                }
                Err(error) => {
                    // The batched messages before it are lost.
                    drop(sender);
                    self.world.fail(error.clone());
                    return Start::failed(error);
                }
            }
        }
        let request = SendRequest { key, mode, bytes: SendBuffer::Borrowed(memory), ticket: None };
        let mut deferred = DeferredActions::default();
        let sent = sender.send(link, self.state(), request, &mut deferred);
        drop(sender);
        self.run_deferred(&mut deferred);
        match sent {
            Ok(None) => Start::Ended(Ok(status.into())),
            Ok(Some(awaited)) => Start::UnderWay { awaited, operation: OperationId(u64::MAX) },
            Err(error) => Start::failed(error),
        }
    }

    #[inline]
    unsafe fn receive(&self, wanted: &Wanted, bytes: ByteLayout) -> Start {
        let state = self.state();
        let selection = selection(wanted);
        // SAFETY: the promise of the caller.
        let mut memory = unsafe { Memory::new(bytes) };
        let is_long = memory.bytes() > state.protocols.rtr as u64;
        let source = match is_long.then(|| self.source_for_rtr(wanted, &memory)).transpose() {
            Ok(source) => source.flatten(),
            Err(error) => return Start::failed(error),
        };
        let is_short = memory.bytes() <= INLINE as u64;
        let mut spins = if wanted.is_awaited && is_short { SPINS } else { 0 };
        let (mut inbox, mut deferred) = loop {
            let mut deferred = DeferredActions::default();
            let mut inbox = state.inbox.lock();
            if let Some(error) = self.world.failure() {
                return Start::failed(error);
            }
            if let Select::Only(peer) = wanted.source
                && let Some(link) = state.link(peer.world)
                && let Some(ended) =
                    inbox.receive_now(link, &selection, &mut memory, state, &mut deferred)
            {
                return self.finish_start(inbox, &mut deferred, Start::Ended(ended));
            }
            if let Some((key, message)) = inbox.matcher.take_message(&selection) {
                let start = inbox.start_with(&key, message, memory, state, &mut deferred);
                return self.finish_start(inbox, &mut deferred, start);
            }
            if spins == 0 || !self.may_spin() {
                break (inbox, deferred);
            }
            spins -= 1;
            self.progress_from(inbox, false, deferred);
            self.flush();
            state.spin_for_cell();
        };
        let previous = source.and_then(|_| inbox.previous_rtr(&selection));
        let (ticket, awaited) = ticket();
        let id = inbox.matcher.keep_receive(&selection, Receive::new(memory, ticket));
        if let (Some((link, context_tag)), Some(previous)) = (source, previous) {
            inbox.send_rtr((id, previous), context_tag, (link, state), &mut deferred);
        }
        drop(inbox);
        self.run_deferred(&mut deferred);
        Start::UnderWay { awaited, operation: OperationId(id.to_u64()) }
    }

    unsafe fn receive_matched(&self, message: MessageId, bytes: ByteLayout) -> Start {
        let state = self.state();
        let mut deferred = DeferredActions::default();
        // SAFETY: the promise of the caller.
        let memory = unsafe { Memory::new(bytes) };
        let mut inbox = state.inbox.lock();
        let Some((key, message)) = inbox.taken.remove(message.0) else {
            let error = self.world.failure().unwrap_or(Error::Abandoned);
            return Start::failed(error);
        };
        let start = inbox.start_with(&key, message, memory, state, &mut deferred);
        drop(inbox);
        self.run_deferred(&mut deferred);
        start
    }

    fn discard(&self, message: MessageId) {
        let state = self.state();
        let mut deferred = DeferredActions::default();
        let mut inbox = state.inbox.lock();
        if let Some((_, message)) = inbox.taken.remove(message.0) {
            inbox.discard(message, state, &mut deferred);
        }
        drop(inbox);
        self.run_deferred(&mut deferred);
    }

    fn cancel(&self, operation: OperationId) {
        let state = self.state();
        let mut deferred = DeferredActions::default();
        state.inbox.lock().cancel(EntryId::from_u64(operation.0), state, &mut deferred);
        self.run_deferred(&mut deferred);
    }

    fn probe(
        &self,
        wanted: &Wanted,
        take: bool,
        waker: Option<&Waker>,
    ) -> Result<Option<Probed>, Error> {
        let selection = selection(wanted);
        // Cloned and dropped under no lock: it is foreign code.
        let mut waker = waker.cloned();
        let mut inbox = self.state().inbox.lock();
        if let Some(error) = self.world.failure() {
            return Err(error);
        }
        let Some((key, message)) = inbox.matcher.message(&selection) else {
            inbox.probers.extend(waker.take());
            return Ok(None);
        };
        let status = key.status(message.length());
        let mut message = None;
        if take && let Some(taken) = inbox.matcher.take_message(&selection) {
            message = Some(MessageId(inbox.taken.insert(taken)));
        }
        Ok(Some(Probed { status, message }))
    }

    #[inline]
    fn progress(&self) -> usize {
        self.try_progress(self.flush_batches())
    }

    #[inline]
    fn spin(&self) -> usize {
        let deferred = self.flush_batches();
        self.state().spin_for_cell();
        self.try_progress(deferred)
    }

    fn flush(&self) {
        self.run_deferred(&mut self.flush_batches());
    }

    fn notify(&self, peer: WorldRank) {
        self.world.progress_for(peer);
    }

    fn may_spin(&self) -> bool {
        // Nothing arrives while virtual time stands still.
        !self.world.is_distant && talpf_runtime::worker_is_spare()
    }

    fn fail(&self, reason: &str) {
        self.world.fail(Error::PeerFailed { rank: self.rank.into(), reason: reason.to_owned() });
    }

    fn statistics(&self) -> Statistics {
        self.state().statistics()
    }

    fn communicator_created(&self, _: ContextId, _: Rank, _: &Members) -> Result<(), Error> {
        Ok(())
    }

    fn communicator_freed(&self, _: ContextId) {}
}
