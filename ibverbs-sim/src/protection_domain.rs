//! The group of objects that may work together.

use std::{fmt, num::NonZeroU32, ptr::NonNull, sync::Arc};

use crate::{
    Access, MemoryRegion, QueuePair, QueuePairInit, Result, SharedReceiveQueue,
    SharedReceiveQueueInit, context::ContextCore, queue_pair_list::QueuePairList,
};

/// Regions, queue pairs and shared receive queues of one domain work together; a queue pair never
/// reaches memory of another domain. Clones are the same domain.
#[derive(Clone)]
pub struct ProtectionDomain {
    pub(crate) core: Arc<DomainCore>,
}

pub(crate) struct DomainCore {
    pub(crate) context: Arc<ContextCore>,
    pub(crate) number: NonZeroU32,
    /// Those that reach its memory, and whose peers do.
    pub(crate) queue_pairs: QueuePairList,
}

impl ProtectionDomain {
    pub(crate) fn new(context: Arc<ContextCore>, number: NonZeroU32) -> Self {
        let queue_pairs = QueuePairList::default();
        Self { core: Arc::new(DomainCore { context, number, queue_pairs }) }
    }

    /// Lets the device use `length` bytes at `start`, for its owner and for peers as `access`
    /// says, until the region is dropped.
    ///
    /// **Errors**: rights that contradict each other, a length over `max_mr_size` or past the end
    /// of the address space, or already `max_mr` regions.
    ///
    /// # Safety
    ///
    /// Until the returned region has been dropped:
    /// - the memory stays valid for reads, and for writes if `access` has a right to write;
    /// - whenever a request posted here or by a peer may write to it, no Rust reference to the
    ///   bytes written is used, and whenever one may read, no exclusive reference is. A
    ///   completion, or anything that its poller tells others, ends that time. Memory that
    ///   requests use as atomics, and the word that a WRITE writes last, may be used as
    ///   `AtomicU64` at the same time;
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

    /// A queue of receives that several queue pairs of this domain can share.
    ///
    /// **Errors**: a limit of the device is exceeded.
    pub fn create_shared_receive_queue(
        &self,
        init: &SharedReceiveQueueInit,
    ) -> Result<SharedReceiveQueue> {
        SharedReceiveQueue::create(&self.core, init)
    }

    /// A queue pair in state RESET.
    ///
    /// **Errors**: a limit of the device is exceeded, or an object of `init` is of another
    /// context or domain.
    pub fn create_queue_pair(&self, init: &QueuePairInit) -> Result<QueuePair> {
        QueuePair::create(&self.core, init)
    }
}

impl DomainCore {
    /// Returns once every request has ended that is being carried out now and may use memory of
    /// this domain. What the caller made unusable before is then used by nobody.
    pub(crate) fn wait_for_holders(&self) {
        for queue_pair in self.queue_pairs.all() {
            // In this order: who connects it stores the peer and then holds it, so either the peer
            // is found here or it starts after this.
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

    /// Those that its regions wait for when they go.
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
