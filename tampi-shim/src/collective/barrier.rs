//! Barriers.

use super::algorithm;
use super::call::CollectiveKind;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::request::Request;

/// The second half of a split-phase barrier: the wait for the other ranks.
#[derive(Debug)]
#[must_use = "wait for the others"]
pub struct Arrival(Request<()>);

impl Arrival {
    /// Returns `true` once all ranks have arrived.
    pub fn is_complete(&self) -> bool {
        self.0.has_ended()
    }

    /// Waits until all ranks have arrived.
    pub async fn wait(self) -> Result<(), Error> {
        self.0.await.map(|_| ())
    }
}

impl Communicator {
    /// Starts a barrier.
    ///
    /// **Completion**: all ranks have started it.
    pub fn ibarrier(&self) -> Request<()> {
        self.start_empty(CollectiveKind::Barrier, algorithm::barrier(self.member()))
    }

    /// Waits until all ranks have arrived. As [`Communicator::ibarrier`].
    pub async fn barrier(&self) -> Result<(), Error> {
        self.ibarrier().await.map(|_| ())
    }

    /// Starts a split-phase barrier: reports that this rank has arrived. Work before
    /// [`Arrival::wait`] overlaps with the arrival of the other ranks.
    pub fn arrive(&self) -> Arrival {
        Arrival(self.ibarrier())
    }
}
