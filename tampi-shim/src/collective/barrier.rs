//! Barriers.

use super::algorithm;
use super::call::Kind;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::request::Request;

/// This rank's arrival at a barrier, whose second half is to wait for the others.
#[derive(Debug)]
#[must_use = "wait for the others"]
pub struct Arrival(Request<()>);

impl Arrival {
    /// Whether all ranks have arrived.
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
        self.start_empty(Kind::Barrier, algorithm::barrier(self.member()))
    }

    /// Waits until all ranks are here. As [`Communicator::ibarrier`].
    pub async fn barrier(&self) -> Result<(), Error> {
        self.ibarrier().await.map(|_| ())
    }

    /// The first half of a barrier: says that this rank is here. What it does before
    /// [`Arrival::wait`] overlaps with the others' way.
    pub fn arrive(&self) -> Arrival {
        Arrival(self.ibarrier())
    }
}
