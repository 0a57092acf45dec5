//! Memory of the program, as addresses that the program has registered.
#![allow(unsafe_code, reason = "memory that C programs own")]

use std::sync::atomic::{AtomicU64, Ordering};

/// Address of a byte of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address(pub(crate) usize);

impl Address {
    /// Returns the address of a pointer that the program has passed.
    pub(crate) fn of(pointer: *mut u8) -> Self {
        Address(pointer.expose_provenance())
    }

    #[inline]
    fn pointer(self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.0)
    }

    /// Returns the address `offset` bytes further on.
    #[inline]
    pub(crate) fn at(self, offset: usize) -> Self {
        Address(self.0.wrapping_add(offset))
    }
}

/// Number of bytes that a message carries itself.
pub(crate) const TINY: usize = size_of::<usize>();

/// Copies `size` bytes, which may overlap.
///
/// # Safety
///
/// Both ranges are memory of the program that stays valid during the call, and that no other thread writes, or
/// reads where it is written, unless the program is wrong.
#[inline]
pub(crate) unsafe fn copy(source: Address, destination: Address, size: usize) {
    // SAFETY: As the caller guarantees.
    unsafe { std::ptr::copy(source.pointer(), destination.pointer(), size) }
}

/// Reads up to [`TINY`] bytes.
///
/// # Safety
///
/// As for [`copy`].
#[inline]
pub(crate) unsafe fn read_tiny(source: Address, size: usize) -> [u8; TINY] {
    debug_assert!(size <= TINY, "{size}");
    if size == TINY {
        // SAFETY: The caller guarantees so many bytes.
        return unsafe { source.pointer().cast::<[u8; TINY]>().read_unaligned() };
    }
    let mut bytes = [0; TINY];
    // SAFETY: As the caller guarantees; `bytes` has room.
    unsafe { std::ptr::copy_nonoverlapping(source.pointer(), bytes.as_mut_ptr(), size) };
    bytes
}

/// Writes the first `size` of the bytes.
///
/// # Safety
///
/// As for [`copy`].
#[inline]
pub(crate) unsafe fn write_tiny(bytes: &[u8; TINY], destination: Address, size: usize) {
    debug_assert!(size <= TINY, "{size}");
    if size == TINY {
        // SAFETY: The caller guarantees so many bytes.
        unsafe { destination.pointer().cast::<[u8; TINY]>().write_unaligned(*bytes) };
    } else {
        // SAFETY: As the caller guarantees; `bytes` has as many.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), destination.pointer(), size) };
    }
}

/// Copies bytes of the library into memory of the program.
///
/// # Safety
///
/// As for [`copy`].
pub(crate) unsafe fn write(bytes: &[u8], destination: Address) {
    // SAFETY: As the caller guarantees.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), destination.pointer(), bytes.len()) };
}

/// Returns a copy of `size` bytes.
///
/// # Safety
///
/// As for [`copy`].
pub(crate) unsafe fn read(source: Address, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    // SAFETY: As the caller guarantees; `bytes` has room.
    unsafe { std::ptr::copy_nonoverlapping(source.pointer(), bytes.as_mut_ptr(), size) };
    bytes
}

/// Returns `true` if an atomic operation on the 8 bytes is possible.
pub(crate) fn is_aligned(address: Address) -> bool {
    address.0.is_multiple_of(align_of::<AtomicU64>())
}

/// Applies an atomic operation to 8 bytes, and returns their value before it.
///
/// # Safety
///
/// The address is aligned, and the 8 bytes are memory of the program that stays valid during the call and is
/// accessed by atomic operations only, unless the program is wrong.
pub(crate) unsafe fn update(address: Address, update: impl Fn(u64) -> u64) -> u64 {
    // SAFETY: As the caller guarantees.
    let word = unsafe { AtomicU64::from_ptr(address.pointer().cast()) };
    word.update(Ordering::AcqRel, Ordering::Acquire, update)
}
