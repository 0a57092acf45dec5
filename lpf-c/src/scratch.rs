//! Aligned memory for elements of the program.
#![allow(unsafe_code, reason = "bytes of elements whose type only the program knows")]

use crate::error::{Error, Result};
use crate::memory::{self, Address};

/// Bytes in memory that is aligned for any element.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    words: Vec<u128>,
    /// Number of bytes that are filled.
    size: usize,
}

/// Bytes of a word.
const WORD: usize = size_of::<u128>();

impl Scratch {
    /// Makes room for so many bytes, and empties it.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub(crate) fn reset(&mut self, capacity: usize) -> Result<()> {
        self.size = 0;
        let words = capacity.div_ceil(WORD);
        let missing = words.saturating_sub(self.words.len());
        self.words.try_reserve_exact(missing).map_err(|_| Error::OutOfMemory)?;
        self.words.resize(words.max(self.words.len()), 0);
        Ok(())
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.words.as_mut_ptr().cast()
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.words.as_ptr().cast()
    }

    /// Appends `size` bytes of the program, for which there must be room.
    ///
    /// # Safety
    ///
    /// As for [`memory::copy`].
    pub(crate) unsafe fn append(&mut self, source: Address, size: usize) {
        assert!(size <= self.words.len() * WORD - self.size, "no room for {size} bytes");
        let end = Address::of(self.as_mut_ptr()).at(self.size);
        // SAFETY: As the caller guarantees; there is room.
        unsafe { memory::copy(source, end, size) };
        self.size += size;
    }

    /// Appends the bytes of another one, for which there must be room.
    pub(crate) fn append_scratch(&mut self, other: &Scratch) {
        let source = Address::of(other.as_ptr().cast_mut());
        // SAFETY: The bytes are there and nobody changes them; this is another one.
        unsafe { self.append(source, other.size) };
    }

    /// Writes the bytes into memory of the program.
    ///
    /// # Safety
    ///
    /// As for [`memory::copy`].
    pub(crate) unsafe fn write_to(&self, destination: Address) {
        // SAFETY: The bytes are filled; the rest as the caller guarantees.
        unsafe { memory::copy(Address::of(self.as_ptr().cast_mut()), destination, self.size) };
    }
}
