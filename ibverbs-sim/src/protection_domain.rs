//! Protection domains.

use std::{fmt, num::NonZeroU32, ptr::NonNull, sync::Arc};

use crate::{
    Access, MemoryRegion, QueuePair, QueuePairInit, Result, SharedReceiveQueue,
    SharedReceiveQueueInit, context::ContextCore, queue_pair_list::QueuePairList,
};

/// A protection domain, which isolates its regions, queue pairs and shared receive queues: a queue
/// pair never reaches memory of another domain. Clones are the same domain.
#[derive(Clone)]
pub struct ProtectionDomain {
    pub(crate) core: Arc<DomainCore>,
}

pub(crate) struct DomainCore {
    pub(crate) context: Arc<ContextCore>,
    pub(crate) number: NonZeroU32,
    /// Queue pairs that use memory of the domain, themselves or through their peers.
    pub(crate) queue_pairs: QueuePairList,
}

impl ProtectionDomain {
    pub(crate) fn new(context: Arc<ContextCore>, number: NonZeroU32) -> Self {
        let queue_pairs = QueuePairList::default();
        Self { core: Arc::new(DomainCore { context, number, queue_pairs }) }
    }

    /// Registers `length` bytes at `start`: the device may use them for its owner, and for peers as
    /// `access` says, until the region is dropped.
    ///
    /// **Errors**: inconsistent rights, a length above `max_mr_size` or past the end of the address
    /// space, or already `max_mr` regions.
    ///
    /// # Safety
    ///
    /// Until the returned region has been dropped:
    /// - the memory stays valid for reads, and for writes if `access` has a right to write;
    /// - whenever a request posted here or by a peer may write to it, no Rust reference to the
    ///   bytes written is used, and whenever one may read, no exclusive reference is. A completion,
    ///   or any notification that its poller passes on, ends that time. Memory that requests use as
    ///   atomics, and the word that a WRITE writes last, may be used as `AtomicU64` at the same
    ///   time;
    /// - no two requests, wherever posted, use the same bytes at the same time if one of them
    ///   writes, unless both are atomics or both move exactly the same aligned eight bytes.
    #[allow(unsafe_code, reason = "registration is where the caller vouches for the memory")]
    pub unsafe fn register(
        &self,
        start: NonNull<u8>,
        length: usize,
        access: Access,
    ) -> Result<MemoryRegion> {
        // SAFETY: the caller's contract is the callee's.
        unsafe { MemoryRegion::register(&self.core, start, length, access) }
    }

    /// Creates a queue of receives that several queue pairs of this domain can share.
    ///
    /// **Errors**: a limit of the device is exceeded.
    pub fn create_shared_receive_queue(
        &self,
        init: &SharedReceiveQueueInit,
    ) -> Result<SharedReceiveQueue> {
        SharedReceiveQueue::create(&self.core, init)
    }

    /// Creates a queue pair in state RESET.
    ///
    /// **Errors**: a limit of the device is exceeded, or an object of `init` is of another
    /// context or domain.
    pub fn create_queue_pair(&self, init: &QueuePairInit) -> Result<QueuePair> {
        QueuePair::create(&self.core, init)
    }
}

impl DomainCore {
    /// Waits until every request has ended that is being carried out at the call and may use memory
    /// of this domain. After it, no thread uses what the caller closed before it.
    pub(crate) fn wait_for_holders(&self) {
        for queue_pair in self.queue_pairs.all() {
            // In this order: a thread that connects the queue pair stores the peer and then takes
            // its gate, so either the peer is found here or its requests start after this.
            queue_pair.wait_for_holder();
            queue_pair.wait_for_peer();
        }
        self.context.device.wait_for_delivery();
    }
}

impl fmt::Debug for ProtectionDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtectionDomain")
            .field("number", &self.core.number)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, DeviceConfig};

    /// A domain waits for these queue pairs when a region is dropped.
    #[test]
    fn a_domain_knows_who_receives_into_its_memory() {
        let context = Device::new(DeviceConfig::default()).unwrap().open();
        let [own, other] = [(); 2].map(|()| context.allocate_protection_domain());
        let queue = context.create_completion_queue(8, None).unwrap();
        let srq = SharedReceiveQueueInit { max_wr: 8, max_sge: 1 };
        for (receives, known) in [(&own, [1, 0]), (&other, [1, 1])] {
            let srq = receives.create_shared_receive_queue(&srq).unwrap();
            let init = QueuePairInit { srq: Some(srq), ..QueuePairInit::new(&queue, &queue) };
            let _queue_pair = own.create_queue_pair(&init).unwrap();
            assert_eq!([&own, &other].map(|domain| domain.core.queue_pairs.all().len()), known);
        }
    }
}
