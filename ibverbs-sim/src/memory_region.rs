//! Memory regions.
//!
//! Dropping a region first closes its key, then waits for the requests that are being carried out
//! by the queue pairs of its domain, by those that receive from a shared queue of it, and by the
//! peers of both: one of them may have checked the key before. See `gate` for why that is enough. A
//! request that waits in a queue pair has checked nothing yet, and finds the key closed later.

use std::{fmt, ptr::NonNull, sync::Arc};

use crate::{
    Access, Error, LocalKey, RailKey, RemoteAddress, RemoteKey, Result, ScatterGather,
    attributes::within, protection_domain::DomainCore,
};

/// A registered memory region. Dropping it deregisters the memory.
pub struct MemoryRegion {
    domain: Arc<DomainCore>,
    key: u32,
    address: u64,
    length: usize,
    access: Access,
    /// Key of the memory by the rail of the device, if that uses it.
    rail_key: Option<RailKey>,
    /// `true` if no request uses the region, so that its drop does not wait.
    unused: bool,
}

impl MemoryRegion {
    /// # Safety
    ///
    /// As [`ProtectionDomain::register`](crate::ProtectionDomain::register).
    #[allow(unsafe_code, reason = "passes the caller's contract on to the key table")]
    pub(crate) unsafe fn register(
        domain: &Arc<DomainCore>,
        start: NonNull<u8>,
        length: usize,
        access: Access,
    ) -> Result<Self> {
        let device = &domain.context.device;
        let address = start.as_ptr().addr() as u64;
        within("max_mr_size", length as u64, device.attributes.max_mr_size)?;
        if !access.is_consistent() {
            return Err(Error::InconsistentAccess { access });
        }
        if address.checked_add(length as u64).is_none() {
            return Err(Error::AddressOverflow { address, length: length as u64 });
        }
        // SAFETY: the memory is the caller's to vouch for until this region is dropped, and its
        // drop closes the key and waits for the device's holds.
        let key = unsafe { device.keys.open(start, length, domain.number, access)? };
        let memory = NonNull::slice_from_raw_parts(start, length);
        let rail_key = device.port.as_ref().and_then(|port| {
            // SAFETY: as above; the drop takes the memory from the rail, too.
            unsafe { port.map_region(RemoteKey(key), domain.number, memory, access) }
        });
        let domain = Arc::clone(domain);
        Ok(Self { domain, key, address, length, access, rail_key, unused: false })
    }

    /// Returns the key for scatter/gather lists.
    pub fn local_key(&self) -> LocalKey {
        LocalKey(self.key)
    }

    /// Returns the key for peers. No other region of this process has the same key, of whichever
    /// device; a key is used again after at least 4,095 further registrations.
    pub fn remote_key(&self) -> RemoteKey {
        RemoteKey(self.key)
    }

    /// Returns the first address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the length in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the access rights.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns the remote address of the byte at `offset`. The range is checked when the address is
    /// used.
    pub fn at(&self, offset: usize) -> RemoteAddress {
        let address = self.address.wrapping_add(offset as u64);
        RemoteAddress { address, key: self.remote_key() }
    }

    /// Returns a scatter/gather entry of `length` bytes from `offset`. The range is checked when
    /// the entry is used.
    pub fn slice(&self, offset: usize, length: u32) -> ScatterGather {
        let address = self.address.wrapping_add(offset as u64);
        ScatterGather { address, length, key: self.local_key() }
    }

    /// Deregisters the memory: afterwards the device does not touch it and refuses the key. Waits
    /// for requests that are being carried out. The same as dropping.
    pub fn deregister(self) {}

    /// Deregisters the memory without waiting for any queue pair.
    ///
    /// **Cost**: two stores and a lock, independent of the number of queue pairs; with a rail that
    /// maps memory, the wait for peers that copy at this moment.
    ///
    /// # Safety
    ///
    /// No request that uses the region may be under way: each one that was posted, here or by a
    /// peer, has completed.
    #[allow(unsafe_code, reason = "the caller vouches for what a wait would make sure of")]
    pub unsafe fn deregister_unused(mut self) {
        self.unused = true;
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        let device = &self.domain.context.device;
        device.keys.close(self.key);
        if let (Some(port), Some(key)) = (&device.port, &self.rail_key) {
            port.unmap_region(self.remote_key(), key, self.access);
        }
        if !self.unused {
            self.domain.wait_for_holders();
        }
        device.keys.release(self.key, self.domain.number);
    }
}

impl fmt::Debug for MemoryRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRegion")
            .field("key", &format_args!("{:#x}", self.key))
            .field("address", &format_args!("{:#x}", self.address))
            .field("length", &self.length)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}
