#![allow(
    unsafe_code,
    reason = "memory is used by the provider, and by this crate through pointers"
)]
//! Memory that a provider uses while this process has it, and the contexts of operations.

use std::{cell::UnsafeCell, ffi::c_void, ptr::NonNull, slice};

/// Memory for packets. All of it is used through pointers, as the provider changes parts of it.
pub(super) struct PacketMemory(NonNull<[u8]>);

// SAFETY: the memory belongs to this value; its users keep its parts apart.
unsafe impl Send for PacketMemory {}
// SAFETY: as above.
unsafe impl Sync for PacketMemory {}

impl PacketMemory {
    pub(super) fn new(bytes: usize) -> Self {
        Self(NonNull::from(Box::leak(vec![0; bytes].into_boxed_slice())))
    }

    pub(super) fn all(&self) -> NonNull<[u8]> {
        self.0
    }

    /// Returns a part of the memory.
    ///
    /// **Panics**: the memory has no such part.
    pub(super) fn part(&self, start: usize, length: usize) -> NonNull<[u8]> {
        assert!(start <= self.0.len() && length <= self.0.len() - start);
        // SAFETY: the start lies within the memory, or at its end.
        NonNull::slice_from_raw_parts(unsafe { self.0.cast::<u8>().add(start) }, length)
    }

    /// Returns the position of a pointer into the memory, if so many bytes are there.
    pub(super) fn position(&self, pointer: *const c_void, length: usize) -> Option<usize> {
        let position = pointer.addr().checked_sub(self.0.cast::<u8>().addr().get())?;
        (position <= self.0.len() && length <= self.0.len() - position).then_some(position)
    }

    /// Returns the bytes of a part.
    ///
    /// # Safety
    ///
    /// Nobody changes the part as long as the bytes are borrowed.
    pub(super) unsafe fn bytes(&self, start: usize, length: usize) -> &[u8] {
        let part = self.part(start, length);
        // SAFETY: the contract of this function.
        unsafe { slice::from_raw_parts(part.cast().as_ptr(), length) }
    }

    /// Copies bytes to a part, one behind the other.
    ///
    /// # Safety
    ///
    /// Nobody else uses the part during the call.
    pub(super) unsafe fn write(&self, start: usize, pieces: [&[u8]; 2]) {
        let mut at = start;
        for piece in pieces {
            let part = self.part(at, piece.len()).cast::<u8>();
            // SAFETY: the contract of this function, and the part is as long.
            unsafe { part.copy_from_nonoverlapping(NonNull::from(piece).cast(), piece.len()) };
            at += piece.len();
        }
    }
}

impl Drop for PacketMemory {
    fn drop(&mut self) {
        // SAFETY: the memory was leaked by `new`, and the provider was closed before.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Contexts of operations, by number. A provider may use the memory of one while its operation is under
/// way.
pub(super) struct Contexts(Box<[UnsafeCell<[usize; 8]>]>);

// SAFETY: nobody reads or writes the memory but the provider.
unsafe impl Send for Contexts {}
// SAFETY: as above.
unsafe impl Sync for Contexts {}

impl Contexts {
    pub(super) fn new(count: usize) -> Self {
        Self((0..count).map(|_| UnsafeCell::new([0; 8])).collect())
    }

    /// Returns the context of a number, for the provider.
    pub(super) fn pointer(&self, number: usize) -> *mut c_void {
        self.0[number].get().cast()
    }

    /// Returns the number of a context that a provider has returned.
    pub(super) fn number(&self, pointer: *const c_void) -> Option<usize> {
        let position = pointer.addr().checked_sub(self.0.as_ptr().addr())?;
        let number = position / size_of::<[usize; 8]>();
        (number < self.0.len()).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_positions_stay_within_the_memory() {
        let memory = PacketMemory::new(10);
        // SAFETY: nobody else has the memory.
        unsafe { memory.write(6, [b"ab", b"cd"]) };
        // SAFETY: as above.
        assert_eq!(unsafe { memory.bytes(5, 5) }, b"\0abcd");
        let at = |position| memory.all().cast::<c_void>().as_ptr().wrapping_byte_add(position);
        assert_eq!(memory.position(at(3), 7), Some(3));
        assert_eq!(memory.position(at(3), 8), None);
        assert_eq!(memory.position(at(11), 0), None);
        assert_eq!(memory.position(std::ptr::null(), 0), None);
    }

    #[test]
    fn a_context_is_known_by_its_pointer() {
        let contexts = Contexts::new(3);
        for number in 0..3 {
            assert_eq!(contexts.number(contexts.pointer(number)), Some(number));
        }
        assert_eq!(contexts.number(std::ptr::null()), None);
        assert_eq!(contexts.number(contexts.pointer(2).wrapping_byte_add(64)), None);
    }
}
