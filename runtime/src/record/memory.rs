//! Address space that is reserved at once and made usable piece by piece, in huge pages where the
//! kernel has them.
//!
//! Under Miri it is a little memory that is usable at once.
#![allow(unsafe_code, reason = "maps memory")]

#[cfg(not(miri))]
pub(super) use self::mapped::{allowed, make_usable, reserve};
#[cfg(miri)]
pub(super) use self::under_miri::{allowed, make_usable, reserve};

#[cfg(not(miri))]
mod mapped {
    use std::ptr::NonNull;

    use rustix::mm::{
        Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect,
    };
    use rustix::process::{Resource, getrlimit};
    use talpf_primitives::HUGE_PAGE;

    /// Returns the bytes of address space that this process may have.
    pub(crate) fn allowed() -> usize {
        getrlimit(Resource::As).current.unwrap_or(u64::MAX) as usize
    }

    /// Reserves address space, aligned to a huge page. Returns `None` if there is not enough.
    pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let (length, access) = (bytes + HUGE_PAGE, ProtFlags::empty());
        // SAFETY: the kernel chooses where, so nothing is mapped there.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), length, access, flags) }.ok()?;
        let start = mapped.map_addr(|start| start.next_multiple_of(HUGE_PAGE));
        // SAFETY: the mapping is a huge page longer than `bytes`, so these lie in it, and nobody
        // uses them. A kernel without huge pages refuses the advice.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
        NonNull::new(start.cast())
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

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn pieces_are_aligned_to_huge_pages_and_usable_one_after_another() {
            let start = reserve(3 * HUGE_PAGE).unwrap();
            assert!(start.addr().get().is_multiple_of(HUGE_PAGE));
            for piece in 0..3 {
                let start = start.as_ptr().wrapping_add(piece * HUGE_PAGE);
                // SAFETY: the piece lies in what was reserved, and nobody has used it.
                assert!(unsafe { make_usable(start, HUGE_PAGE) });
                let last = start.wrapping_add(HUGE_PAGE - 1);
                // SAFETY: the piece is usable.
                unsafe { last.write(1) };
                // SAFETY: as above.
                assert_eq!(unsafe { start.read() }, 0);
                // SAFETY: as above.
                assert_eq!(unsafe { last.read() }, 1);
            }
        }
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
