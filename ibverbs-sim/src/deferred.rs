//! Actions that are deferred until no gate is held.
//!
//! Wakers and wires run code of the program, a queue pair that goes into error flushes its queues,
//! and the last reference to a queue pair may drop wakers: none of it may happen under a gate. All
//! of them are rare except packets to other processes, and an empty list costs nothing.

use std::sync::Arc;

use crate::{CompletionChannel, queue_pair::QueuePairCore, wire::OutgoingPacket};

/// Actions that are collected under a gate and run after it.
#[derive(Default)]
#[must_use]
pub(crate) struct Deferred {
    /// Boxed because it is usually absent.
    actions: Option<Box<DeferredActions>>,
}

#[derive(Default)]
struct DeferredActions {
    packets: Vec<OutgoingPacket>,
    fired: Vec<CompletionChannel>,
    failed: Vec<Arc<QueuePairCore>>,
    dropped: Vec<Arc<QueuePairCore>>,
}

impl Deferred {
    #[cold]
    pub(crate) fn fire(&mut self, channel: Option<&CompletionChannel>) {
        self.actions.get_or_insert_default().fired.extend(channel.cloned());
    }

    /// Defers the flush of a queue pair that has just gone into error.
    #[cold]
    pub(crate) fn flush(&mut self, queue_pair: Arc<QueuePairCore>) {
        self.actions.get_or_insert_default().failed.push(queue_pair);
    }

    /// Defers the send of a packet to another process.
    #[cold]
    pub(crate) fn send(&mut self, packet: OutgoingPacket) {
        self.actions.get_or_insert_default().packets.push(packet);
    }

    /// Defers the drop of references, which may be the last.
    #[cold]
    pub(crate) fn drop_later(&mut self, queue_pairs: impl IntoIterator<Item = Arc<QueuePairCore>>) {
        let mut queue_pairs = queue_pairs.into_iter().peekable();
        if queue_pairs.peek().is_some() {
            self.actions.get_or_insert_default().dropped.extend(queue_pairs);
        }
    }

    /// Runs all actions. The caller holds no gate and no lock.
    #[inline]
    pub(crate) fn run(mut self) {
        if let Some(actions) = self.actions.take() {
            Self::run_slow(*actions);
        }
    }

    /// Runs actions, and those that flushes add. Packets are sent in the order in which they were
    /// collected.
    #[cold]
    fn run_slow(mut actions: DeferredActions) {
        loop {
            actions.packets.drain(..).for_each(OutgoingPacket::send);
            let Some(queue_pair) = actions.failed.pop() else { break };
            let mut more = Self::default();
            queue_pair.flush(&mut more);
            let more = more.actions.map(|more| *more).unwrap_or_default();
            actions.packets.extend(more.packets);
            actions.failed.extend(more.failed);
            actions.fired.extend(more.fired);
            actions.dropped.extend(more.dropped);
        }
        actions.fired.iter().for_each(CompletionChannel::fire);
    }
}
