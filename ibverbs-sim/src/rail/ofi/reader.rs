#![allow(unsafe_code, reason = "functions of the library are called")]
//! Endpoint for reads of memory of peers.
//!
//! The provider writes to memory of this process only for reads of this endpoint. Closing it ends all of
//! them, whatever state their peers are in: afterwards the provider touches none of that memory.

use std::{ffi::c_void, ptr::NonNull, sync::Arc};

use super::{abi, endpoint::Started, object::Object, queue::Queue, strict::Imitation};

/// Domain of a reader alone, with the addresses of peers. The addresses are closed first.
pub(super) type OwnDomain = (Object<abi::AddressVector>, Object<abi::Domain>);

/// An endpoint that reads. It is closed before the domain that it was made of.
pub(super) struct Reader {
    calls: abi::RmaCalls,
    endpoint: Object<abi::Endpoint>,
    pub(super) queue: Queue,
    /// `None` if the domain is that of the process.
    _own: Option<OwnDomain>,
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
    /// Takes an endpoint that is enabled.
    pub(super) fn new(
        endpoint: Object<abi::Endpoint>,
        queue: Queue,
        own: Option<OwnDomain>,
        imitation: Arc<Imitation>,
    ) -> Self {
        // SAFETY: as long as an object is open it has its functions; enabling it has chosen them.
        let calls = unsafe { endpoint.record().rma.read() };
        Self { calls, endpoint, queue, _own: own, imitation }
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
        let (read, endpoint) = (self.calls.readmsg, self.endpoint.pointer());
        // SAFETY: the contract of this function; the other records are needed during the call only.
        Started::of(unsafe { read(endpoint, &raw const message, abi::COMPLETION) })
    }
}
