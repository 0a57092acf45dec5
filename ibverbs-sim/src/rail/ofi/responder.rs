#![allow(unsafe_code, reason = "memory of writes and registrations is passed to the provider")]
//! Endpoint that answers the reads of peers.
//!
//! Peers read memory of this process by this endpoint only. Closing it ends all of their reads, whatever state they
//! are in: afterwards the provider reads none of that memory.

use std::{os::fd::OwnedFd, ptr::NonNull};

use super::{
    OfiError, abi,
    apart::Apart,
    endpoint::{Endpoint, Registered},
    queue::Queue,
    reader::Exposed,
};

/// An endpoint that answers reads. Registrations are closed before it.
pub(super) struct Responder {
    apart: Apart,
    address: Vec<u8>,
}

impl Responder {
    /// Opens an endpoint. `sleep_on` becomes readable with its queue.
    pub(super) fn open(endpoint: &Endpoint, sleep_on: &OwnedFd) -> Result<Self, OfiError> {
        // A domain that goes on would accept connections of peers for an endpoint that is closed, in libfabric 2.5.
        let apart = endpoint.open_apart(true)?;
        apart.wakes(sleep_on)?;
        let address = endpoint.address_of(&apart.endpoint)?;
        Ok(Self { apart, address })
    }

    /// Returns the address by which peers reach the endpoint.
    pub(super) fn address(&self) -> &[u8] {
        &self.address
    }

    /// Returns the queue of the endpoint, which gets on as that is polled.
    pub(super) fn queue(&self) -> &Queue {
        &self.apart.queue
    }

    /// Registers memory that peers may read. Returns how they name it as well.
    ///
    /// # Safety
    ///
    /// The memory is valid for reads, and changed by nobody, until the registration was dropped and the responder after
    /// it, or the peer that got it announced has answered.
    pub(super) unsafe fn register(
        &self,
        endpoint: &Endpoint,
        memory: NonNull<[u8]>,
        key: u64,
    ) -> Result<(Registered, Exposed), OfiError> {
        // SAFETY: the contract of this function.
        let registered =
            unsafe { endpoint.register_apart(&self.apart, memory, abi::REMOTE_READ, key) }?;
        let start = memory.cast::<u8>().addr().get() as u64;
        let start = if endpoint.has_addresses() { start } else { 0 };
        let exposed = Exposed { key: registered.key(), start };
        Ok((registered, exposed))
    }
}
