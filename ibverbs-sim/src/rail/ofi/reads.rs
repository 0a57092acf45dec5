//! Reads of this process, long ones, whose bytes their owners announce.

use std::ffi::c_void;
use std::ptr::NonNull;

use super::packet::ReadPiece;
use crate::{
    CompletionStatus,
    rail::{emulation::WINDOW, frame::Malformed, registrations::KeyNumber},
};

/// Memory for the bytes of a piece, with the descriptor of its registration for local operations.
pub(super) type Target = (NonNull<[u8]>, *mut c_void);

/// A read that is posted.
pub(super) struct LongRead {
    pub(super) local: NonNull<[u8]>,
    /// Number of a key of this process that must be registered; `None` if the memory stays anyway.
    pub(super) local_key: Option<KeyNumber>,
    /// Descriptor of the registration of the memory, for local operations.
    pub(super) descriptor: *mut c_void,
    pub(super) context: u64,
}

/// A read that its owner has not ended.
struct Read {
    long: LongRead,
    /// Bytes that were announced, and those of them that are no longer awaited.
    announced: usize,
    taken: usize,
    /// Set once no further piece comes.
    is_refused: bool,
    /// Set once the memory is not to be used any more. The owner may still announce pieces.
    is_cancelled: bool,
}

/// Reads to each process, by number.
pub(super) struct Reads(Box<[Vec<Option<Read>>]>);

// SAFETY: memory and descriptor belong to whoever has posted the read, for any thread, until the read has ended
// or was cancelled.
#[allow(unsafe_code, reason = "the memory of reads may go to other threads")]
unsafe impl Send for LongRead {}

impl Reads {
    pub(super) fn new(processes: usize) -> Self {
        Self((0..processes).map(|_| Vec::new()).collect())
    }

    /// Returns the number for a further read; `None` if too many are under way.
    pub(super) fn free(&self, to: u32) -> Option<u32> {
        let all = &self.0[to as usize];
        let free = all.iter().position(Option::is_none).unwrap_or(all.len());
        (free < WINDOW).then_some(free as u32)
    }

    /// Adds a read with a number that is free.
    pub(super) fn add(&mut self, to: u32, number: u32, long: LongRead) {
        let all = &mut self.0[to as usize];
        let read = Read { long, announced: 0, taken: 0, is_refused: false, is_cancelled: false };
        match all.get_mut(number as usize) {
            Some(place) => *place = Some(read),
            None => all.push(Some(read)),
        }
    }

    fn of(&mut self, from: u32, number: u32) -> Option<&mut Read> {
        self.0.get_mut(from as usize)?.get_mut(number as usize)?.as_mut()
    }

    /// Takes an announcement. Returns the memory for its bytes, with a descriptor; `None` if they are not wanted
    /// any more.
    pub(super) fn announced(
        &mut self,
        from: u32,
        piece: &ReadPiece,
    ) -> Result<Option<Target>, Malformed> {
        let read = self.of(from, piece.read).filter(|read| !read.is_refused);
        let read = read.ok_or(Malformed("a piece of no read"))?;
        let (length, offset) = (piece.length as usize, piece.offset as usize);
        let all = read.long.local.len();
        if offset > all || length > all - offset || length > all - read.announced {
            return Err(Malformed("a piece beyond its read"));
        }
        read.announced += length;
        if read.is_cancelled {
            read.taken += length;
            self.forget_ended(from, piece.read);
            return Ok(None);
        }
        #[allow(unsafe_code, reason = "a part of checked memory is a pointer")]
        // SAFETY: the offset is at most the length of the memory.
        let start = unsafe { read.long.local.cast::<u8>().add(offset) };
        Ok(Some((NonNull::slice_from_raw_parts(start, length), read.long.descriptor)))
    }

    /// Notes that the bytes of an announcement are there, or are not awaited any more. Returns the context and
    /// the status of the read, if that has ended with them.
    pub(super) fn taken(
        &mut self,
        from: u32,
        number: u32,
        length: u32,
    ) -> Option<(u64, CompletionStatus)> {
        self.of(from, number)?.taken += length as usize;
        self.forget_ended(from, number)
    }

    /// Notes that no further piece comes; otherwise as [`taken`](Self::taken).
    pub(super) fn refused(
        &mut self,
        from: u32,
        number: u32,
    ) -> Result<Option<(u64, CompletionStatus)>, Malformed> {
        let read = self.of(from, number).filter(|read| read.announced < read.long.local.len());
        read.ok_or(Malformed("the end of no read"))?.is_refused = true;
        Ok(self.forget_ended(from, number))
    }

    /// Forgets a read that has ended. Returns its context and status, unless it was cancelled.
    fn forget_ended(&mut self, from: u32, number: u32) -> Option<(u64, CompletionStatus)> {
        let place = self.0.get_mut(from as usize)?.get_mut(number as usize)?;
        let Read { long, is_cancelled, is_refused, .. } = place.take_if(|read| {
            let is_last = read.is_refused || read.announced == read.long.local.len();
            is_last && read.taken == read.announced
        })?;
        let status =
            if is_refused { CompletionStatus::RemoteAccess } else { CompletionStatus::Success };
        (!is_cancelled).then_some((long.context, status))
    }

    /// Returns the process and the number of a read that was not cancelled, of those with a key that is.
    pub(super) fn find(&self, is_it: impl Fn(u32, &LongRead) -> bool) -> Option<(u32, u32)> {
        (0..).zip(&self.0).find_map(|(process, reads)| {
            let is_one = |read: &&Read| !read.is_cancelled && is_it(process, &read.long);
            let number = reads.iter().position(|read| read.as_ref().filter(is_one).is_some())?;
            Some((process, number as u32))
        })
    }

    /// Cancels a read, of which no fetch is under way. Returns its context.
    pub(super) fn cancel(&mut self, process: u32, number: u32) -> Option<u64> {
        let read = self.of(process, number)?;
        (read.is_cancelled, read.taken) = (true, read.announced);
        let context = read.long.context;
        self.forget_ended(process, number);
        Some(context)
    }

    /// Forgets all reads to a process that is lost, and passes the contexts of those that were not cancelled to
    /// `sink`.
    pub(super) fn lose(&mut self, process: u32, mut sink: impl FnMut(u64)) {
        let lost = self.0[process as usize].drain(..).flatten();
        lost.filter(|read| !read.is_cancelled).for_each(|read| sink(read.long.context));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u32 = 1000;
    const REFUSED: CompletionStatus = CompletionStatus::RemoteAccess;

    fn reads() -> Reads {
        let mut reads = Reads::new(2);
        for context in [7, 8] {
            let local = NonNull::slice_from_raw_parts(NonNull::<u8>::dangling(), BYTES as usize);
            let (local_key, descriptor) = (None, std::ptr::null_mut());
            let number = reads.free(1).unwrap();
            reads.add(1, number, LongRead { local, local_key, descriptor, context });
        }
        reads
    }

    fn piece(read: u32, offset: u32, length: u32) -> ReadPiece {
        ReadPiece { block: 0, length, read, offset }
    }

    #[test]
    fn a_read_ends_with_the_last_of_its_bytes_in_any_order() {
        let mut reads = reads();
        for (offset, length) in [(600, 400), (0, 600)] {
            let (memory, _) = reads.announced(1, &piece(0, offset, length)).unwrap().unwrap();
            assert_eq!(memory.len(), length as usize);
        }
        assert_eq!(reads.taken(1, 0, 600), None);
        assert_eq!(reads.taken(1, 0, 400), Some((7, CompletionStatus::Success)));
        assert_eq!(reads.taken(1, 0, 400), None);
        assert_eq!(reads.free(1), Some(0));
    }

    #[test]
    fn a_refused_read_ends_once_nothing_of_it_is_under_way() {
        let mut reads = reads();
        assert!(reads.announced(1, &piece(0, 0, 600)).unwrap().is_some());
        assert_eq!(reads.refused(1, 0), Ok(None));
        assert!(reads.announced(1, &piece(0, 600, 1)).is_err());
        assert_eq!(reads.taken(1, 0, 600), Some((7, REFUSED)));
        assert_eq!(reads.refused(1, 1), Ok(Some((8, REFUSED))));
        assert!(reads.refused(1, 1).is_err());
    }

    #[test]
    fn a_cancelled_read_keeps_its_number_until_its_owner_has_ended_it() {
        let mut reads = reads();
        assert!(reads.announced(1, &piece(0, 0, 600)).unwrap().is_some());
        assert_eq!(reads.cancel(1, 0), Some(7));
        assert_eq!(reads.find(|_, read| read.context == 7), None);
        assert_eq!(reads.free(1), Some(2));
        assert_eq!(reads.announced(1, &piece(0, 600, 400)), Ok(None));
        assert_eq!(reads.free(1), Some(0));
        assert_eq!(reads.find(|_, read| read.context == 8), Some((1, 1)));
        assert_eq!(reads.cancel(1, 1), Some(8));
        assert_eq!(reads.refused(1, 1), Ok(None));
        assert_eq!(reads.free(1), Some(0));
    }

    #[test]
    fn pieces_that_fit_no_read_are_malformed() {
        let mut reads = reads();
        for (read, offset, length) in
            [(2, 0, 1), (0, 0, BYTES + 1), (0, 1, BYTES), (0, BYTES + 1, 0), (0, u32::MAX, 1)]
        {
            assert!(reads.announced(1, &piece(read, offset, length)).is_err());
        }
        assert!(reads.announced(0, &piece(0, 0, 1)).is_err());
        assert!(reads.announced(1, &piece(0, 0, 600)).is_ok());
        assert!(reads.announced(1, &piece(0, 0, 401)).is_err());
    }

    #[test]
    fn as_many_reads_as_the_window_are_under_way() {
        let mut reads = reads();
        while let Some(number) = reads.free(1) {
            let local = NonNull::slice_from_raw_parts(NonNull::<u8>::dangling(), 1);
            let (local_key, descriptor) = (None, std::ptr::null_mut());
            reads.add(1, number, LongRead { local, local_key, descriptor, context: 9 });
        }
        let mut lost = Vec::new();
        reads.lose(1, |context| lost.push(context));
        assert_eq!((lost.len(), &lost[..3]), (WINDOW, &[7, 8, 9][..]));
        assert_eq!(reads.free(1), Some(0));
    }
}
