//! The registration of an operation's local memory with the device.
#![allow(unsafe_code, reason = "registers the memory of guards with the device")]

use std::ptr::NonNull;
use std::sync::Arc;

use ibverbs_sim::{Access, LocalKey, MemoryRegion, ProtectionDomain};
use talpf_runtime::ByteLayout;

use super::guards::Source;
use crate::error::Error;
use crate::slot::{Slot, SlotTable};

/// A guard whose memory is registered with the device.
pub(super) struct Registered<G> {
    /// Dropped before the guard.
    registration: Option<Registration>,
    guard: G,
}

#[expect(dead_code, reason = "kept for its drop")]
enum Registration {
    /// The registration of the slot that the array is.
    Slot(Arc<Slot>),
    /// A registration for this operation, of an array that is no slot.
    Own(MemoryRegion),
}

impl<G> Registered<G> {
    /// Wraps a guard whose memory the device does not use.
    pub(super) fn unused(guard: G) -> Self {
        Registered { registration: None, guard }
    }

    /// Returns the guard and drops the registration.
    pub(super) fn into_guard(self) -> G {
        let Registered { registration, guard } = self;
        drop(registration);
        guard
    }
}

impl<G: Source> Registered<G> {
    /// Finds the slot of the array of `guard`, or registers the memory of the guard until this
    /// value is dropped. Returns the key too.
    ///
    /// **Errors**: the device has no room for one more region, or takes none of this size.
    pub(super) fn new(
        slots: &SlotTable,
        domain: &ProtectionDomain,
        guard: G,
        layout: &ByteLayout,
        access: Access,
    ) -> Result<(Self, LocalKey), Error> {
        if let Some(slot) = slots.of_array(guard.array()) {
            let key = slot.local_key();
            return Ok((Registered { registration: Some(Registration::Slot(slot)), guard }, key));
        }
        let start = NonNull::new(layout.first).unwrap_or(NonNull::dangling());
        // SAFETY: the guard keeps the array, and gives the right to the rows of its layout, until
        // it is dropped or returned, after the region. Peers have no right to the region, and
        // requests under its key are those of the operation that the guard belongs to: they touch
        // the rows of the layout, and write only if `access` says so.
        let region = unsafe { domain.register(start, layout.span_bytes(), access)? };
        let key = region.local_key();
        Ok((Registered { registration: Some(Registration::Own(region)), guard }, key))
    }
}
