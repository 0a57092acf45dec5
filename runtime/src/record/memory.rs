//! Address space that is reserved at once and made usable piece by piece.
//!
//! Under Miri it is a small piece of memory that is usable at once.
#![allow(unsafe_code, reason = "maps memory")]

#[cfg(not(miri))]
pub(super) use self::mapped::{allowed, make_usable, reserve};
#[cfg(miri)]
pub(super) use self::under_miri::{allowed, make_usable, reserve};

#[cfg(not(miri))]
mod mapped {
    use std::ptr::NonNull;

    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
    use rustix::process::{Resource, getrlimit};

    /// Returns the bytes of address space that this process may have.
    pub(crate) fn allowed() -> usize {
        getrlimit(Resource::As).current.unwrap_or(u64::MAX) as usize
    }

    /// Reserves address space. Returns `None` if there is not enough.
    pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses where, so nothing is mapped there.
        let mapped =
            unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::empty(), flags) };
        NonNull::new(mapped.ok()?.cast())
    }

    /// Makes a part usable. Returns `false` if the system has no memory for it.
    ///
    /// # Safety
    ///
    /// The part lies in the address space that `reserve` has returned, and nobody has used it.
    pub(crate) unsafe fn make_usable(start: *mut u8, bytes: usize) -> bool {
        let usable = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: by the contract of this function.
        unsafe { mprotect(start.cast(), bytes, usable) }.is_ok()
    }
}

#[cfg(miri)]
mod under_miri {
    use std::alloc::{Layout, alloc};
    use std::ptr::NonNull;

    pub(crate) fn allowed() -> usize {
        64 << 20
    }

    pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
        let layout = Layout::from_size_align(bytes, 4096).ok()?;
        // SAFETY: the size is not zero.
        NonNull::new(unsafe { alloc(layout) })
    }

    pub(crate) unsafe fn make_usable(_start: *mut u8, _bytes: usize) -> bool {
        true
    }
}
