//! Completion queues.
//!
//! A completion queue is filled by the threads that carry out requests and emptied by any thread
//! that polls. A queue that overruns goes into error for good, as in verbs: later completions are
//! lost, every queue pair attached to it goes into error, and its context gets an [`AsyncEvent`].

use std::{fmt, sync::Arc};

use talpf_primitives::{AtomicBool, Ordering};

use crate::{
    AsyncEvent, CompletionChannel, CompletionStatus, Error, Result, WorkCompletion,
    attributes::within_nonzero,
    completion::CompletionEntry,
    context::ContextCore,
    deferred::Deferred,
    queue_pair_list::QueuePairList,
    ring::{ARMED_ANY, ARMED_SOLICITED, Ring},
};

/// A bounded queue of [`WorkCompletion`]s. Clones are the same queue.
#[derive(Clone)]
pub struct CompletionQueue {
    pub(crate) core: Arc<CompletionQueueCore>,
}

pub(crate) struct CompletionQueueCore {
    ring: Ring<CompletionEntry>,
    overrun: AtomicBool,
    channel: Option<CompletionChannel>,
    /// Queue pairs that report here; they go into error if this queue overruns.
    pub(crate) queue_pairs: QueuePairList,
    pub(crate) context: Arc<ContextCore>,
}

impl CompletionQueue {
    pub(crate) fn create(
        context: &Arc<ContextCore>,
        entries: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<Self> {
        within_nonzero("max_cqe", entries, context.device.attributes.max_cqe)?;
        let core = CompletionQueueCore {
            ring: Ring::new(entries),
            overrun: AtomicBool::new(false),
            channel: channel.cloned(),
            queue_pairs: QueuePairList::default(),
            context: Arc::clone(context),
        };
        Ok(Self { core: Arc::new(core) })
    }

    /// Returns the number of completions that the queue can hold; at least the number that was
    /// requested.
    pub fn capacity(&self) -> u32 {
        self.core.ring.capacity()
    }

    /// Returns `true` if a poll would find no completion at the moment.
    ///
    /// **Cost**: two loads. Unlike a lock or a poll that finds something, it takes no cache line
    /// from other threads.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.core.ring.is_empty()
    }

    /// Moves completions to the front of `completions`, oldest first, and returns their number.
    ///
    /// **Ordering**: the writes of a polled completion's request, and of all earlier requests of
    /// its queue pair, are visible.
    /// **Cost**: one compare-and-swap a batch, and one for each run of send completions.
    #[inline]
    pub fn poll(&self, completions: &mut [WorkCompletion]) -> usize {
        let mut freed = None;
        let mut slots = completions.iter_mut();
        let count = self.core.ring.pop_many(slots.len(), |_, entry| {
            if let Some((number, executed)) = entry.frees() {
                // Entries of one queue pair are in order: the last of a run counts.
                let run = freed.replace((number, executed));
                if let Some((other, executed)) = run
                    && other != number
                {
                    self.core.context.device.send_slots.free(other, executed);
                }
            }
            if let Some(slot) = slots.next() {
                *slot = entry.into();
            }
        });
        if let Some((number, executed)) = freed {
            self.core.context.device.send_slots.free(number, executed);
        }
        count
    }

    /// Arms the channel for the next completion, or with `solicited_only` for the next one that the
    /// peer solicited or that failed. Fires once.
    ///
    /// Poll again after arming and before waiting: earlier completions fire nothing. A completion
    /// that arrives during this call may fire although that poll finds it.
    ///
    /// **Errors**: the queue has no channel.
    pub fn request_notify(&self, solicited_only: bool) -> Result<()> {
        let channel = self.core.channel.as_ref().ok_or(Error::NoCompletionChannel)?;
        let interest = if solicited_only { ARMED_SOLICITED } else { ARMED_ANY };
        if self.core.ring.arm(interest) || self.core.overrun.load(Ordering::SeqCst) {
            channel.fire();
        }
        Ok(())
    }

    /// Returns an error if completions were lost because the queue was full.
    pub fn check(&self) -> Result<()> {
        if self.core.overrun.load(Ordering::Acquire) {
            return Err(Error::CompletionQueueOverrun { capacity: self.capacity() });
        }
        Ok(())
    }
}

impl CompletionQueueCore {
    /// Adds a completion, and defers the event of the channel if the queue is armed for it.
    #[inline]
    pub(crate) fn push(
        &self,
        entry: CompletionEntry,
        solicited: bool,
        status: CompletionStatus,
        deferred: &mut Deferred,
    ) {
        if self.overrun.load(Ordering::Relaxed) {
            return;
        }
        let always = solicited || status != CompletionStatus::Success;
        let fires = if always { ARMED_ANY | ARMED_SOLICITED } else { ARMED_ANY };
        match self.ring.push(entry, fires) {
            Ok(false) => {}
            Ok(true) => deferred.fire(self.channel.as_ref()),
            Err(_full) => self.overflow(deferred),
        }
    }

    #[cold]
    fn overflow(&self, deferred: &mut Deferred) {
        if self.overrun.swap(true, Ordering::SeqCst) {
            return;
        }
        self.context.raise(AsyncEvent::CompletionQueueOverrun { capacity: self.ring.capacity() });
        let queue_pairs = self.queue_pairs.all();
        queue_pairs.iter().for_each(|queue_pair| queue_pair.enter_error(deferred));
        deferred.drop_later(queue_pairs);
        deferred.fire(self.channel.as_ref());
    }
}

impl fmt::Debug for CompletionQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionQueue")
            .field("capacity", &self.capacity())
            .field("overrun", &self.core.overrun)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
