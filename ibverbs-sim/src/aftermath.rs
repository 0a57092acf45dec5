//! What carrying out requests leaves to do once no gate is held.
//!
//! Wakers and wires run foreign code, a queue pair that went into error flushes queues of its own,
//! and the last reference to a queue pair may drop wakers: none of it may happen under a gate. All
//! are rare but what leaves for other processes, and an empty list costs nothing.

use std::sync::Arc;

use crate::{CompletionChannel, queue_pair::QueuePairCore, wire::Departure};

/// Collected under a gate, settled after it.
#[derive(Default)]
#[must_use]
pub(crate) struct Aftermath {
    /// Boxed because it is hardly ever there.
    matters: Option<Box<Matters>>,
}

#[derive(Default)]
struct Matters {
    departures: Vec<Departure>,
    fired: Vec<CompletionChannel>,
    failed: Vec<Arc<QueuePairCore>>,
    let_go: Vec<Arc<QueuePairCore>>,
}

impl Aftermath {
    #[cold]
    pub(crate) fn fire(&mut self, channel: Option<&CompletionChannel>) {
        self.matters.get_or_insert_default().fired.extend(channel.cloned());
    }

    /// The queue pair has just gone into error: its requests are to be flushed.
    #[cold]
    pub(crate) fn flush(&mut self, queue_pair: Arc<QueuePairCore>) {
        self.matters.get_or_insert_default().failed.push(queue_pair);
    }

    /// A packet is to leave for another process.
    #[cold]
    pub(crate) fn depart(&mut self, departure: Departure) {
        self.matters.get_or_insert_default().departures.push(departure);
    }

    /// Drops references later, of which some may be the last.
    #[cold]
    pub(crate) fn let_go(&mut self, queue_pairs: impl IntoIterator<Item = Arc<QueuePairCore>>) {
        let mut queue_pairs = queue_pairs.into_iter().peekable();
        if queue_pairs.peek().is_some() {
            self.matters.get_or_insert_default().let_go.extend(queue_pairs);
        }
    }

    /// Does everything. The caller holds no gate and no lock.
    #[inline]
    pub(crate) fn settle(mut self) {
        if let Some(matters) = self.matters.take() {
            Self::settle_all(*matters);
        }
    }

    /// Flushing may lead to further matters, among them further flushes. Packets leave in the order
    /// in which they were collected.
    #[cold]
    fn settle_all(mut matters: Matters) {
        loop {
            matters.departures.drain(..).for_each(Departure::leave);
            let Some(queue_pair) = matters.failed.pop() else { break };
            let mut further = Self::default();
            queue_pair.flush(&mut further);
            let further = further.matters.map(|further| *further).unwrap_or_default();
            matters.departures.extend(further.departures);
            matters.failed.extend(further.failed);
            matters.fired.extend(further.fired);
            matters.let_go.extend(further.let_go);
        }
        matters.fired.iter().for_each(CompletionChannel::fire);
    }
}
