#![allow(unsafe_code, reason = "functions of the library are called")]
//! Endpoint for reads of memory of peers.
//!
//! The provider writes to memory of this process only for reads of this endpoint. Closing it ends all of
//! them, whatever state their peers are in: afterwards the provider touches none of that memory.

use std::{ffi::c_void, os::fd::OwnedFd, ptr::NonNull, sync::Arc};

use super::{
    OfiError, abi,
    apart::Apart,
    endpoint::{Endpoint, Started},
    queue::Queue,
    strict::Imitation,
};

/// An endpoint that reads.
pub(super) struct Reader {
    calls: abi::RmaCalls,
    apart: Apart,
    /// Responders of peers, by process, as far as they were used.
    responders: Vec<Option<abi::Address>>,
    imitation: Arc<Imitation>,
}

/// Memory of a peer, as a provider names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exposed {
    pub(super) key: u64,
    /// Address of the first byte; 0 with a provider that counts from the start.
    pub(super) start: u64,
}

impl Exposed {
    /// Returns the memory from an offset on.
    pub(super) fn at(self, offset: u64) -> Self {
        Self { start: self.start.wrapping_add(offset), ..self }
    }
}

impl Reader {
    /// Opens an endpoint. `sleep_on` becomes readable with its queue.
    pub(super) fn open(
        endpoint: &Endpoint,
        processes: usize,
        sleep_on: &OwnedFd,
    ) -> Result<Self, OfiError> {
        let apart = endpoint.open_apart(endpoint.frees_twice)?;
        apart.wakes(sleep_on)?;
        // SAFETY: as long as an object is open it has its functions; enabling it has chosen them.
        let calls = unsafe { apart.endpoint.record().rma.read() };
        Ok(Self {
            calls,
            apart,
            responders: vec![None; processes],
            imitation: endpoint.imitation(),
        })
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.apart.queue
    }

    /// Returns the responder of a process, which has this address.
    pub(super) fn responder(
        &mut self,
        process: u32,
        endpoint: &Endpoint,
        address: &[u8],
    ) -> Result<abi::Address, OfiError> {
        let place = &mut self.responders[process as usize];
        if let Some(known) = *place {
            return Ok(known);
        }
        let number = endpoint.insert(&self.apart.addresses, address)?;
        *place = Some(number);
        Ok(number)
    }

    /// Forgets the responder of a process, which has another one from now on.
    pub(super) fn forget(&mut self, process: u32) {
        self.responders[process as usize] = None;
    }

    /// Reads memory of a peer into `local`.
    ///
    /// # Safety
    ///
    /// Memory, with what its registration has for local operations, and context are valid, and used
    /// by nobody else, until the completion with the context, or until the reader was closed.
    pub(super) unsafe fn read(
        &self,
        from: abi::Address,
        remote: Exposed,
        local: NonNull<[u8]>,
        mut descriptor: *mut c_void,
        context: *mut c_void,
    ) -> Started {
        if self.imitation.is_full() {
            return Started::NoRoom;
        }
        let room = libc::iovec { iov_base: local.cast().as_ptr(), iov_len: local.len() };
        let there = abi::RmaAddress { addr: remote.start, len: local.len(), key: remote.key };
        let message = abi::RmaMessage {
            msg_iov: &raw const room,
            desc: &raw mut descriptor,
            iov_count: 1,
            addr: from,
            rma_iov: &raw const there,
            rma_iov_count: 1,
            context,
            data: 0,
        };
        let (read, endpoint) = (self.calls.readmsg, self.apart.endpoint.pointer());
        // SAFETY: the contract of this function; the other records are needed during the call only.
        Started::of(unsafe { read(endpoint, &raw const message, abi::COMPLETION) })
    }
}
