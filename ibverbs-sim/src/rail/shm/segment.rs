//! Segments: memory of this process that lies in its memory file, so that peers map it.

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind},
    ops::Range,
    os::fd::{AsFd, OwnedFd},
    ptr::NonNull,
    sync::Arc,
};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use talpf_primitives::{HUGE_PAGE, Mutex};

use super::{
    layout::{Layout, PAGE},
    mapping::Mapping,
};

/// The memory file of this process, with the parts of it that are no segment.
pub(super) struct MemoryFile {
    pub(super) file: OwnedFd,
    pub(super) mapping: Mapping,
    /// Lengths of the free parts by their offsets.
    free: Mutex<BTreeMap<usize, usize>>,
    /// Parts that are never free again: a peer that was given up may still write there.
    kept: Mutex<Vec<Range<usize>>>,
}

/// Seals of a memory file: nobody can make it shorter or longer.
pub(super) const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

impl MemoryFile {
    /// Creates the file. It has no name, and is gone once no process has it.
    pub(super) fn create(layout: Layout) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("ibverbs-sim", flags)?;
        rustix::fs::ftruncate(&file, layout.length as u64)?;
        rustix::fs::fcntl_add_seals(&file, SEALS)?;
        let mapping = Mapping::new(file.as_fd(), layout)?;
        let free = [(layout.segments, layout.length - layout.segments)].into();
        Ok(Self { file, mapping, free: Mutex::new(free), kept: Mutex::default() })
    }

    fn allocate(&self, length: usize) -> io::Result<usize> {
        // A long segment begins at a huge page.
        let boundary = if length >= HUGE_PAGE { HUGE_PAGE } else { PAGE };
        let mut free = self.free.lock();
        let fitting = free.iter().find_map(|(&start, &size)| {
            let offset = start.next_multiple_of(boundary);
            let end = offset.checked_add(length)?;
            (end <= start + size).then_some((start, size, offset))
        });
        let Some((start, size, offset)) = fitting else {
            let all = self.mapping.layout().length - self.mapping.layout().segments;
            let left: usize = free.values().sum();
            let text = format!(
                "a segment of {length} bytes: {left} of the {all} bytes that the rail was made \
                 with are free, and no part of that size"
            );
            return Err(io::Error::new(ErrorKind::OutOfMemory, text));
        };
        self.make_present(offset, length)?;
        free.remove(&start);
        let (before, behind) = (offset - start, start + size - (offset + length));
        for (start, size) in [(start, before), (offset + length, behind)] {
            if size > 0 {
                free.insert(start, size);
            }
        }
        Ok(offset)
    }

    /// Has the kernel give memory to a part of the file, in huge pages where it is long enough and the kernel has them.
    /// Memory that is missing is an error here, and no signal at the first store.
    fn make_present(&self, offset: usize, length: usize) -> io::Result<()> {
        let give = |offset: usize, length: usize| {
            let none = FallocateFlags::empty();
            rustix::fs::fallocate(&self.file, none, offset as u64, length as u64)
        };
        let whole = length / HUGE_PAGE * HUGE_PAGE;
        let mut huge_pages = (offset..offset + whole).step_by(HUGE_PAGE);
        if whole > 0 && huge_pages.all(|page| give(page, PAGE).is_ok()) {
            self.mapping.prefer_huge_pages(offset, whole);
        }
        let given = give(offset, length);
        if given.is_err() {
            self.take_back(offset, length);
        }
        Ok(given?)
    }

    /// Gives the memory of a part of the file back to the kernel.
    fn take_back(&self, offset: usize, length: usize) {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // A file that keeps the memory is as good, only larger.
        let _ = rustix::fs::fallocate(&self.file, hole, offset as u64, length as u64);
    }

    /// Keeps a part for ever.
    pub(super) fn keep(&self, offset: usize, length: usize) {
        self.kept.lock().push(offset..offset + length);
    }

    fn release(&self, mut offset: usize, mut length: usize) {
        let is_inside = |part: &Range<usize>| part.start < offset + length && offset < part.end;
        if self.kept.lock().iter().any(is_inside) {
            return;
        }
        self.take_back(offset, length);
        let mut free = self.free.lock();
        if let Some(size) = free.remove(&(offset + length)) {
            length += size;
        }
        if let Some((&before, &size)) = free.range(..offset).next_back()
            && before + size == offset
        {
            (offset, length) = (before, size + length);
        }
        free.insert(offset, length);
    }
}

/// Memory that peers of a [`ShmRail`](super::ShmRail) map, once it is registered: they store into
/// it directly. It is all zero at first, and stays where it is until the segment drops.
pub struct ShmSegment {
    file: Arc<MemoryFile>,
    offset: usize,
    length: usize,
    start: NonNull<u8>,
}

#[allow(unsafe_code, reason = "the memory of a segment may be used from any thread")]
mod threads {
    // SAFETY: a segment gives out pointers only.
    unsafe impl Send for super::ShmSegment {}
    // SAFETY: as above.
    unsafe impl Sync for super::ShmSegment {}
}

impl ShmSegment {
    pub(super) fn allocate(file: &Arc<MemoryFile>, length: usize) -> io::Result<Self> {
        let whole = length.max(1).checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
        let offset = file.allocate(whole)?;
        let start = file.mapping.segment(offset as u64, length).ok_or(ErrorKind::OutOfMemory)?;
        Ok(Self { file: Arc::clone(file), offset, length, start })
    }

    /// Returns the memory of the segment, which begins at a page.
    ///
    /// The caller keeps the rules of references and threads, as with memory of an allocator.
    pub fn memory(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.start, self.length)
    }
}

#[allow(unsafe_code, reason = "vouches for the memory of a segment")]
mod allocated {
    // SAFETY: the mapping of the file stays while the segment keeps it, and the part of a segment
    // is given to no other one. The kernel gives out zeroed memory, at page boundaries.
    unsafe impl crate::RailMemory for super::ShmSegment {
        fn memory(&self) -> std::ptr::NonNull<[u8]> {
            Self::memory(self)
        }
    }
}

impl Drop for ShmSegment {
    fn drop(&mut self) {
        self.file.release(self.offset, self.length.max(1).next_multiple_of(PAGE));
    }
}
