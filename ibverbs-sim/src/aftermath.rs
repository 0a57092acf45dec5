//! What carrying out requests leaves to do once no gate is held.
//!
//! Wakers run foreign code, and a queue pair that went into error flushes queues of its own:
//! neither may happen under a gate. Both are rare, and an empty list costs nothing.

use std::sync::Arc;

use crate::{CompletionChannel, queue_pair::QueuePairCore};

/// Collected under a gate, settled after it.
#[derive(Default)]
#[must_use]
pub(crate) struct Aftermath {
    /// Boxed because it is hardly ever there.
    matters: Option<Box<Matters>>,
}

#[derive(Default)]
struct Matters {
    fired: Vec<CompletionChannel>,
    failed: Vec<Arc<QueuePairCore>>,
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

    /// Does everything. The caller holds no gate.
    #[inline]
    pub(crate) fn settle(mut self) {
        if let Some(matters) = self.matters.take() {
            Self::settle_all(*matters);
        }
    }

    /// Flushing may lead to further matters, among them further flushes.
    #[cold]
    fn settle_all(mut matters: Matters) {
        while let Some(queue_pair) = matters.failed.pop() {
            let mut further = Self::default();
            queue_pair.flush(&mut further);
            let further = further.matters.map(|further| *further).unwrap_or_default();
            matters.failed.extend(further.failed);
            matters.fired.extend(further.fired);
        }
        matters.fired.iter().for_each(CompletionChannel::fire);
    }
}
