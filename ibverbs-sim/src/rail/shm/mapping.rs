#![allow(unsafe_code, reason = "memory that processes share is mapped, and seen as atomic words")]
//! Mappings of memory files.

use std::{io, os::fd::BorrowedFd, ptr::NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use talpf_primitives::HUGE_PAGE;

use super::{
    keys::KeySlot,
    layout::{Layout, Ring, UseWords},
    words::{LifeWord, SleepWord},
};

/// A memory file of this process, or of a peer, in the memory of this process.
pub(super) struct Mapping {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is reached as atomic words, or through pointers by those who have checked that
// they may.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Types of which every content is valid, and which are shared by atomic words alone.
///
/// # Safety
///
/// The type consists of atomic integers.
unsafe trait Words {}
// SAFETY: it is one atomic word.
unsafe impl Words for SleepWord {}
// SAFETY: it is one atomic word.
unsafe impl Words for LifeWord {}
// SAFETY: it has four atomic words.
unsafe impl Words for KeySlot {}
// SAFETY: each is one atomic word.
unsafe impl Words for UseWords {}
// SAFETY: it has atomic words only.
unsafe impl Words for Ring {}

impl Mapping {
    /// Maps a file, which is as long as its layout says and cannot become shorter. The mapping begins at a huge page.
    pub(super) fn new(file: BorrowedFd<'_>, layout: Layout) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let room = layout.length + HUGE_PAGE;
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let free =
            unsafe { mmap_anonymous(std::ptr::null_mut(), room, ProtFlags::empty(), flags)? };
        let before = free.addr().next_multiple_of(HUGE_PAGE) - free.addr();
        let place = free.wrapping_byte_add(before);
        let (access, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: the place lies in what was just mapped, which nobody uses.
        let start = unsafe { mmap(place, layout.length, access, flags, file, 0) };
        let start = match start {
            Ok(start) => start,
            Err(error) => {
                // SAFETY: as above.
                let _ = unsafe { munmap(free, room) };
                return Err(error.into());
            }
        };
        let behind = place.wrapping_byte_add(layout.length);
        for (unused, bytes) in [(free, before), (behind, HUGE_PAGE - before)] {
            if bytes > 0 {
                // SAFETY: as above: it is what lies around the mapping. Addresses that stay reserved are a loss only.
                let _ = unsafe { munmap(unused, bytes) };
            }
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, layout })
    }

    /// Asks the kernel for huge pages in a part of the file, of which each has a page with content. It does not matter
    /// whether the machine has them for memory that is shared, unless it denies them. A hint: Linux before 6.1 has none.
    pub(super) fn prefer_huge_pages(&self, offset: usize, length: usize) {
        if offset + length <= self.layout.length {
            // SAFETY: the part lies in the mapping, and its content stays.
            let start = unsafe { self.start.add(offset) };
            // SAFETY: as above.
            unsafe { libc::madvise(start.as_ptr().cast(), length, libc::MADV_COLLAPSE) };
        }
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) fn sleep_word(&self) -> &SleepWord {
        self.at(self.layout.sleep_word())
    }

    pub(super) fn life_word(&self) -> &LifeWord {
        self.at(self.layout.life_word())
    }

    pub(super) fn key(&self, index: usize) -> &KeySlot {
        self.at(self.layout.key(index))
    }

    pub(super) fn uses(&self, user: u32) -> &UseWords {
        self.at(self.layout.uses(user))
    }

    pub(super) fn ring(&self, writer: u32) -> &Ring {
        self.at(self.layout.ring(writer))
    }

    fn at<T: Words>(&self, offset: usize) -> &T {
        assert!(offset + size_of::<T>() <= self.layout.segments, "the layout has it");
        // SAFETY: the offset lies within the mapping.
        let start = unsafe { self.start.add(offset) }.cast::<T>();
        assert!(start.is_aligned(), "the layout has aligned it");
        // SAFETY: the mapping is as long and lives while it is borrowed; any content is valid, and
        // everybody uses it as atomic words.
        unsafe { start.as_ref() }
    }

    /// Returns memory of segments that begins at an offset of the file; `None` if it has none there.
    pub(super) fn segment(&self, offset: u64, length: usize) -> Option<NonNull<u8>> {
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(length)?;
        if offset < self.layout.segments || end > self.layout.length {
            return None;
        }
        // SAFETY: the offset lies within the mapping.
        Some(unsafe { self.start.add(offset) })
    }

    /// Returns the offset in the file of memory that lies in its segments.
    pub(super) fn offset_of(&self, memory: NonNull<[u8]>) -> Option<u64> {
        let first = self.start.as_ptr().addr() + self.layout.segments;
        let last = self.start.as_ptr().addr() + self.layout.length;
        let start = memory.cast::<u8>().as_ptr().addr();
        let is_inside = start >= first && start <= last && memory.len() <= last - start;
        is_inside.then(|| (start - self.start.as_ptr().addr()) as u64)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nothing borrows it.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.layout.length) };
        debug_assert!(unmapped.is_ok(), "it was mapped: {unmapped:?}");
    }
}
