#![allow(unsafe_code, reason = "checked memory is passed to the rail")]
//! Memory that processes share by their rail, so that requests need no packet for their data.
//!
//! A process registers its regions with the rail, too, if that maps memory or carries out long
//! writes and reads, and announces the keys of those with remote rights to all others. A queue pair that is connected to another process
//! registers a *permit*, which is memory of no bytes: its key is open as long as the queue pair
//! responds, and the peer gets it with an acknowledgement. Whoever has both keys copies by `Rail::write_at_once` and
//! `Rail::read_at_once`, and changes words by `Rail::update_at_once`, which touch nothing once either is closed. What is
//! refused is no error: the request goes as a packet instead, and the responder decides.

use std::{collections::HashMap, num::NonZeroU32, ptr::NonNull};

use talpf_primitives::Mutex;

use super::{LongRequest, MappedRegion, Packet, Permit, Port};
use crate::{
    Access, CompletionStatus, LocalKey, RailAddress, RailError, RailKey, RemoteAddress, RemoteKey,
    ScatterGather, WordUpdate, callback, deferred::Deferred, device::DeviceCore,
    queue_pair::LocalBuffer,
};

/// Most regions of a process that are known.
const MAX_REGIONS: usize = 1 << 16;

/// Regions of a process, by their keys.
#[derive(Default)]
pub(super) struct MappedRegions(Mutex<HashMap<u32, MappedRegion>>);

impl MappedRegions {
    pub(super) fn insert(&self, key: RemoteKey, region: MappedRegion) {
        let mut regions = self.0.lock();
        if regions.len() < MAX_REGIONS || regions.contains_key(&key.0) {
            regions.insert(key.0, region);
        }
    }

    pub(super) fn remove(&self, key: RemoteKey) {
        self.0.lock().remove(&key.0);
    }

    /// Returns the address for the rail, if the region is known and belongs to `domain`.
    fn find(&self, remote: RemoteAddress, domain: u32) -> Option<RailAddress> {
        let region = *self.0.lock().get(&remote.key.0).filter(|region| region.domain == domain)?;
        let offset = remote.address.wrapping_sub(region.address);
        Some(RailAddress { key: region.key, offset })
    }
}

/// Keys by the rail of the regions of this process, by their keys.
#[derive(Default)]
pub(super) struct OwnRegions(Mutex<HashMap<u32, RailKey>>);

impl OwnRegions {
    fn find(&self, key: LocalKey) -> Option<RailKey> {
        self.0.lock().get(&key.0).copied()
    }
}

impl Port {
    /// Lets peers use memory by the rail, as far as `access` has rights to read and write, and
    /// the rail for long requests of this process. Returns `None` if the rail does neither.
    ///
    /// # Safety
    ///
    /// The contract of `Rail::register`, until [`unmap`](Self::unmap).
    pub(crate) unsafe fn map(&self, memory: NonNull<[u8]>, access: Access) -> Option<RailKey> {
        let is_used_by_peers =
            is_remote(access) && (self.limits.is_mapped || self.limits.long_bytes.is_some());
        if !is_used_by_peers && !self.is_long(memory.len() as u64) {
            return None;
        }
        // SAFETY: the contract of this function.
        let register = || unsafe { self.rail.register(memory, access) };
        // Without a key there are packets.
        callback::call("the registration of a rail", register)?.ok()
    }

    /// Registers memory of no bytes, whose key is a permit.
    pub(crate) fn map_nothing(&self, access: Access) -> Option<RailKey> {
        let nothing = NonNull::slice_from_raw_parts(NonNull::dangling(), 0);
        // SAFETY: memory of no bytes is valid.
        unsafe { self.map(nothing, access) }
    }

    /// Takes memory from the peers. Returns once nobody touches it.
    pub(crate) fn unmap(&self, key: &RailKey) {
        callback::call("the deregistration of a rail", || self.rail.deregister(key));
    }

    /// Lets peers use a region by the rail; otherwise as [`map`](Self::map). The announcement is
    /// sent with the next packet.
    ///
    /// # Safety
    ///
    /// As for [`map`](Self::map).
    pub(crate) unsafe fn map_region(
        &self,
        key: RemoteKey,
        domain: NonZeroU32,
        memory: NonNull<[u8]>,
        access: Access,
    ) -> Option<RailKey> {
        // SAFETY: the contract of this function.
        let rail_key = unsafe { self.map(memory, access)? };
        let address = memory.cast::<u8>().addr().get() as u64;
        self.own.0.lock().insert(key.0, rail_key);
        let region = MappedRegion { domain: domain.get(), address, key: rail_key };
        if is_remote(access) {
            self.queue_to_all(&Packet::Region { key, region });
        }
        Some(rail_key)
    }

    /// Takes a region from the peers.
    pub(crate) fn unmap_region(&self, key: RemoteKey, rail_key: &RailKey, access: Access) {
        self.own.0.lock().remove(&key.0);
        self.unmap(rail_key);
        if is_remote(access) {
            self.queue_to_all(&Packet::RegionClosed { key });
        }
    }

    fn queue_to_all(&self, packet: &Packet<'_>) {
        let others = (0..self.processes()).filter(|process| *process != self.process());
        others.for_each(|process| self.queue(process, packet, None));
    }

    /// Returns the address for the rail of memory of a process, if its region is known and belongs to
    /// `domain`.
    pub(super) fn find_region(
        &self,
        process: u32,
        remote: RemoteAddress,
        domain: u32,
    ) -> Option<RailAddress> {
        self.regions.get(process as usize)?.find(remote, domain)
    }

    /// Returns `true` if memory of a process may be copied to or from at once, as far as is known here.
    pub(crate) fn copies(&self, process: u32, permit: &Permit, remote: RemoteAddress) -> bool {
        self.maps(process) && self.find_region(process, remote, permit.domain).is_some()
    }

    /// Copies between `local`, which is the data of a request or what it writes to, and memory of a
    /// process. Returns `false` unless all bytes were copied.
    pub(crate) fn copy_at_once(
        &self,
        process: u32,
        permit: &Permit,
        remote: RemoteAddress,
        local: LocalBuffer<'_>,
    ) -> bool {
        if !self.limits.is_mapped {
            return false;
        }
        let Some(mut at) = self.find_region(process, remote, permit.domain) else { return false };
        let mut copy = |memory: NonNull<[u8]>, is_write: bool| {
            let is_copied = if is_write {
                // SAFETY: the memory is inline data of a request, or was checked and stays
                // registered while the gate is held; nobody changes the data of a request.
                unsafe { self.rail.write_at_once(process, memory, &at, &permit.key) }
            } else {
                // SAFETY: as above; it was checked for writes, and belongs to the request.
                unsafe { self.rail.read_at_once(process, memory, &at, &permit.key) }
            };
            at.offset = at.offset.wrapping_add(memory.len() as u64);
            is_copied
        };
        match local {
            LocalBuffer::Inline(bytes) => copy(NonNull::from(bytes), true),
            LocalBuffer::Source(pieces) => {
                pieces.as_slice().iter().all(|piece| copy(piece.memory(), true))
            }
            LocalBuffer::Target(pieces) => {
                pieces.as_slice().iter().all(|piece| copy(piece.memory(), false))
            }
            LocalBuffer::Brought { .. } | LocalBuffer::Delivered { .. } => false,
        }
    }

    /// Changes a word of memory of a process, and returns its value before; `None` if the rail has not.
    pub(crate) fn update_at_once(
        &self,
        process: u32,
        permit: &Permit,
        remote: RemoteAddress,
        update: WordUpdate,
    ) -> Option<u64> {
        if !self.limits.is_mapped {
            return None;
        }
        let at = self.find_region(process, remote, permit.domain)?;
        self.rail.update_at_once(process, update, &at, &permit.key)
    }

    /// Returns `true` if the rail may write or read so many bytes without a packet for them.
    pub(crate) fn is_long(&self, length: u64) -> bool {
        self.limits.long_bytes.is_some_and(|long| length >= long as u64)
    }

    /// Lets the rail move the data of a request, whose list is `list`, to or from memory of a process. Returns
    /// `false` if a packet has to carry it.
    ///
    /// **Errors**: those of `Rail::write_long`.
    pub(crate) fn post_long(
        &self,
        process: u32,
        permit: Permit,
        remote: RemoteAddress,
        (local, list): (LocalBuffer<'_>, &[ScatterGather]),
        context: u64,
    ) -> Result<bool, RailError> {
        let Some(at) = self.find_region(process, remote, permit.domain) else { return Ok(false) };
        let mut pieces = list.iter().filter(|piece| piece.length > 0);
        let key = pieces.next().and_then(|piece| self.own.find(piece.key));
        let (Some(key), None) = (key, pieces.next()) else { return Ok(false) };
        match local {
            LocalBuffer::Source(pieces) => {
                let [piece] = pieces.as_slice() else { return Ok(false) };
                let local = (piece.memory(), &key);
                // SAFETY: the memory was checked, and is that of a region with the key, which is deregistered
                // before the memory goes; nobody changes the data of a request, which is cancelled if it
                // ends before the rail has.
                unsafe { self.rail.write_long(process, local, &at, &permit.key, context) }
            }
            LocalBuffer::Target(pieces) => {
                let [piece] = pieces.as_slice() else { return Ok(false) };
                let local = (piece.memory(), &key);
                // SAFETY: as above; it was checked for writes, and belongs to the request.
                unsafe { self.rail.read_long(process, local, &at, &permit.key, context) }
            }
            _ => Ok(false),
        }
    }

    /// Ends the use of the memory of a request by the rail.
    pub(crate) fn cancel_long(&self, process: u32, context: u64) {
        self.rail.cancel_long(process, context);
    }
}

/// Returns `true` if peers may use memory with these rights.
fn is_remote(access: Access) -> bool {
    let rights = [Access::REMOTE_READ, Access::REMOTE_WRITE, Access::REMOTE_ATOMIC];
    rights.into_iter().any(|right| access.contains(right))
}

/// Passes the end of an operation of the rail to the queue pair whose request it was.
pub(super) fn long_ended(
    device: &DeviceCore,
    context: u64,
    status: CompletionStatus,
    deferred: &mut Deferred,
) {
    let request = LongRequest::from_number(context);
    if let Some(queue_pair) = device.find(request.queue_pair) {
        queue_pair.take_long_end(request, status, deferred);
    }
}
