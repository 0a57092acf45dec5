//! Shared receive queues.

use std::{fmt, sync::Arc};

use crate::{
    PostError, ReceiveWorkRequest, Result,
    attributes::{within, within_nonzero},
    deferred::Deferred,
    protection_domain::DomainCore,
    receive_queue::ReceiveQueue,
};

/// Sizes of a [`SharedReceiveQueue`].
#[derive(Clone, Debug)]
pub struct SharedReceiveQueueInit {
    /// Receives outstanding at one time.
    pub max_wr: u32,
    /// Entries of one scatter list.
    pub max_sge: u32,
}

impl Default for SharedReceiveQueueInit {
    fn default() -> Self {
        Self { max_wr: 1024, max_sge: 1 }
    }
}

/// A queue of receives for every queue pair that is created with it. Clones are the same queue. It
/// is not flushed when one of them fails: its receives stay for the others.
#[derive(Clone)]
pub struct SharedReceiveQueue {
    pub(crate) domain: Arc<DomainCore>,
    pub(crate) receives: Arc<ReceiveQueue>,
}

impl SharedReceiveQueue {
    pub(crate) fn create(domain: &Arc<DomainCore>, init: &SharedReceiveQueueInit) -> Result<Self> {
        let limits = &domain.context.device.attributes;
        within_nonzero("max_srq_wr", init.max_wr, limits.max_srq_wr)?;
        within("max_sge", init.max_sge, limits.max_sge)?;
        let receives = ReceiveQueue::new(init.max_wr, init.max_sge, domain.number);
        Ok(Self { domain: Arc::clone(domain), receives: Arc::new(receives) })
    }

    /// Returns the number of receives that the queue can hold; at least the number that was
    /// requested.
    pub fn capacity(&self) -> u32 {
        self.receives.capacity()
    }

    /// Adds receives in order, and resumes senders that wait for them.
    ///
    /// **Errors**: the first receive whose list is too long or that finds the queue full; those
    /// before it are posted.
    pub fn post_receive(&self, requests: &[ReceiveWorkRequest<'_>]) -> Result<(), PostError> {
        let mut deferred = Deferred::default();
        let posted = self.receives.post(requests, &mut deferred);
        deferred.run();
        posted
    }
}

impl fmt::Debug for SharedReceiveQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedReceiveQueue")
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}
