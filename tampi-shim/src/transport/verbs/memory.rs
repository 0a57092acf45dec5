//! Memory of operations: copied from and to, and registered.
#![allow(unsafe_code, reason = "the memory that callers of a transport vouch for")]

use std::ptr::NonNull;

use ibverbs_sim::{Access, MemoryRegion, ProtectionDomain};
use talpf_runtime::ByteLayout;

use super::cell::RemoteLayout;
use crate::error::Error;

/// Length below which rows are packed, in bytes: a request costs about as much as a copy of that
/// length.
const SHORT_ROW: usize = 512;

/// Memory of an operation under way. The value does not outlive the operation.
pub(super) struct Memory(ByteLayout);

impl Memory {
    /// Creates the value for the memory of `layout`.
    ///
    /// # Safety
    ///
    /// Until this is dropped the memory is valid for reads and not changed, or, if [`fill`] or
    /// [`register`] with a right to write is called, valid for writes and used by nobody else.
    ///
    /// [`fill`]: Memory::fill
    /// [`register`]: Memory::register
    pub(super) unsafe fn new(layout: ByteLayout) -> Self {
        Memory(layout)
    }

    /// Creates the value for the bytes of a vector that is kept with it.
    ///
    /// # Safety
    ///
    /// Until this is dropped the vector is neither changed nor dropped; it may move.
    pub(super) unsafe fn of_kept(bytes: &mut Vec<u8>) -> Self {
        Memory(crate::buffer::sealed::Memory::layout(bytes))
    }

    pub(super) fn layout(&self) -> &ByteLayout {
        &self.0
    }

    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// Returns `true` if there are several rows so short that a copy is cheaper than a request for
    /// each.
    pub(super) fn has_short_rows(&self) -> bool {
        self.0.rows > 1 && self.0.row_bytes < SHORT_ROW
    }

    /// Returns the bytes of one row.
    #[inline]
    fn row(&self, row: usize) -> &[u8] {
        let start = self.0.first.wrapping_add(row * self.0.stride_bytes);
        // SAFETY: a row of the memory that `new` was promised.
        unsafe { std::slice::from_raw_parts(start, self.0.row_bytes) }
    }

    /// Returns the bytes, if they are contiguous.
    #[inline]
    pub(super) fn contiguous(&self) -> Option<&[u8]> {
        match self.0.rows {
            0 => Some(&[]),
            1 => Some(self.row(0)),
            _ => None,
        }
    }

    /// Appends the bytes, row after row.
    pub(super) fn append_to(&self, bytes: &mut Vec<u8>) {
        (0..self.0.rows).for_each(|row| bytes.extend_from_slice(self.row(row)));
    }

    /// Fills the memory from its beginning, row after row, with the bytes of all `parts`, which
    /// fit.
    #[inline]
    pub(super) fn fill(&mut self, parts: &[&[u8]]) {
        let ByteLayout { first, rows, row_bytes, stride_bytes, .. } = self.0;
        if let ([part], 1) = (parts, rows)
            && let Ok(word) = <[u8; 8]>::try_from(*part)
            && row_bytes >= 8
        {
            // The most frequent length, without a function call.
            // SAFETY: eight bytes of the memory that `new` was promised, and nobody else uses it.
            return unsafe { first.cast::<[u8; 8]>().write(word) };
        }
        let (mut row, mut column) = (0, 0);
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() && row < rows {
                let length = rest.len().min(row_bytes - column);
                let start = first.wrapping_add(row * stride_bytes + column);
                // SAFETY: `length` bytes of one row of the memory that `new` was promised, and
                // nobody else uses it; they are not the device's, as callers lend what they own.
                unsafe { std::ptr::copy_nonoverlapping(rest.as_ptr(), start, length) };
                rest = &rest[length..];
                column += length;
                if column == row_bytes {
                    (row, column) = (row + 1, 0);
                }
            }
        }
    }

    /// Registers the memory from its first byte to its last. Empty memory has no registration.
    ///
    /// **Errors**: those of the device.
    pub(super) fn register(
        &self,
        domain: &ProtectionDomain,
        access: Access,
    ) -> Result<Registered, Error> {
        let length = self.0.span_bytes();
        let region = match NonNull::new(self.0.first) {
            Some(start) if self.bytes() > 0 => {
                // SAFETY: rows are valid until the operation has ended, and the region is dropped
                // before that. Requests name bytes of rows only, and nobody else uses those.
                Some(unsafe { domain.register(start, length, access)? })
            }
            _ => None,
        };
        Ok(Registered { region })
    }
}

/// Registration of the memory of an operation.
pub(super) struct Registered {
    region: Option<MemoryRegion>,
}

impl Registered {
    pub(super) fn region(&self) -> Option<&MemoryRegion> {
        self.region.as_ref()
    }

    /// Describes the memory for a peer.
    pub(super) fn remote_layout(&self, layout: &ByteLayout) -> RemoteLayout {
        let key = self.region.as_ref().map_or(0, |region| region.remote_key().to_u32());
        RemoteLayout {
            address: layout.first.addr() as u64,
            key,
            rows: layout.rows as u32,
            row_bytes: layout.row_bytes as u64,
            stride_bytes: layout.stride_bytes as u64,
        }
    }

    /// Ends the registration of memory that no request uses any more.
    ///
    /// # Safety
    ///
    /// As [`MemoryRegion::deregister_unused`].
    pub(super) unsafe fn end_unused(self) {
        if let Some(region) = self.region {
            // SAFETY: the caller's promise.
            unsafe { region.deregister_unused() };
        }
    }
}
