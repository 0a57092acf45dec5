#![allow(unsafe_code, reason = "the memory of reads belongs to those who post them")]
//! Reads of this process, long ones, whose bytes their owners announce.

use std::ffi::c_void;
use std::ptr::NonNull;

use super::{
    OfiRail,
    fetches::completed,
    incoming::Arrived,
    packet::{Control, ReadRequest},
    progress::Inbox,
};
use crate::{
    CompletionStatus,
    rail::{RailAddress, RailError, emulation::WINDOW, frame::Malformed, registrations::KeyNumber},
};

/// Memory for bytes of a peer, with the descriptor of its registration for local operations.
pub(super) type Destination = (NonNull<[u8]>, *mut c_void);

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
    /// Set while its answer is announced, until its bytes are there.
    is_announced: bool,
    /// Set once the memory is not to be used any more. The owner may still announce the answer.
    is_cancelled: bool,
}

/// Reads to each process, by number.
pub(super) struct Reads(Box<[Vec<Option<Read>>]>);

// SAFETY: memory and descriptor belong to whoever has posted the read, for any thread, until the read has ended
// or was cancelled.
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
        let read = Read { long, is_announced: false, is_cancelled: false };
        match all.get_mut(number as usize) {
            Some(place) => *place = Some(read),
            None => all.push(Some(read)),
        }
    }

    fn of(&mut self, from: u32, number: u32) -> Option<&mut Read> {
        self.0.get_mut(from as usize)?.get_mut(number as usize)?.as_mut()
    }

    /// Takes the announcement of an answer. Returns its length, and the memory for its bytes; `None` if they are not
    /// wanted any more: the read is forgotten then.
    pub(super) fn announced(
        &mut self,
        from: u32,
        number: u32,
    ) -> Result<(usize, Option<Destination>), Malformed> {
        let read = self.of(from, number).filter(|read| !read.is_announced);
        let read = read.ok_or(Malformed("the answer to no read"))?;
        read.is_announced = true;
        let (local, descriptor) = (read.long.local, read.long.descriptor);
        let destination = (!read.is_cancelled).then_some((local, descriptor));
        if destination.is_none() {
            self.forget(from, number);
        }
        Ok((local.len(), destination))
    }

    /// Notes that the answer can be announced once more.
    pub(super) fn unread(&mut self, from: u32, number: u32) {
        if let Some(read) = self.of(from, number) {
            read.is_announced = false;
        }
    }

    /// Forgets a read whose bytes are there. Returns its context and status, unless it was cancelled.
    pub(super) fn taken(&mut self, from: u32, number: u32) -> Option<(u64, CompletionStatus)> {
        Some((self.forget(from, number)?, CompletionStatus::Success))
    }

    /// Forgets a read that is refused; otherwise as [`taken`](Self::taken).
    pub(super) fn refused(
        &mut self,
        from: u32,
        number: u32,
    ) -> Result<Option<(u64, CompletionStatus)>, Malformed> {
        let read = self.of(from, number).filter(|read| !read.is_announced);
        read.ok_or(Malformed("the end of no read"))?;
        Ok(self.forget(from, number).map(|context| (context, CompletionStatus::RemoteAccess)))
    }

    /// Forgets a read. Returns its context, unless it was cancelled.
    fn forget(&mut self, from: u32, number: u32) -> Option<u64> {
        let Read { long, is_cancelled, .. } =
            self.0.get_mut(from as usize)?.get_mut(number as usize)?.take()?;
        (!is_cancelled).then_some(long.context)
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
        let context = read.long.context;
        if read.is_announced {
            self.forget(process, number);
        } else {
            // Its owner may announce it at any time.
            read.is_cancelled = true;
        }
        Some(context)
    }

    /// Forgets all reads to a process that is lost, and passes the contexts of those that were not cancelled to
    /// `sink`.
    pub(super) fn lose(&mut self, process: u32, mut sink: impl FnMut(u64)) {
        let lost = self.0[process as usize].drain(..).flatten();
        lost.filter(|read| !read.is_cancelled).for_each(|read| sink(read.long.context));
    }
}

impl OfiRail {
    /// Posts a long read. `None` if it is to be carried out by frames.
    ///
    /// # Safety
    ///
    /// `local` must be valid for writes, and be used by nobody else, until the read has ended, or
    /// [`cancel_long`](crate::Rail::cancel_long) has returned, or `deregister` with its local key has.
    pub(super) unsafe fn ask(
        &self,
        to: u32,
        (local, local_key): (NonNull<[u8]>, Option<KeyNumber>),
        remote: &RailAddress,
        permit: u64,
        context: u64,
    ) -> Option<Result<(), RailError>> {
        let length = u32::try_from(local.len()).ok().filter(|length| *length > 0)?;
        let descriptor = match local_key {
            Some(key) => self.local_descriptor(key.number())?,
            None if self.endpoint.needs_local() => return None,
            None => std::ptr::null_mut(),
        };
        let mut inbox = self.inbox.lock();
        let fetches = &mut inbox.fetches;
        // Whoever deregisters the key does so before it cancels, under this lock.
        if local_key.is_some_and(|key| !self.registrations.contains(key)) {
            return None;
        }
        if let Err(error) = self.peer(to) {
            return Some(Err(error));
        }
        fetches.responders[to as usize].as_ref()?;
        let no_room = Some(Err(RailError::NoRoom { process: to }));
        // The owner counts a read as under way until it has its answer.
        let free = fetches.reads.free(to).filter(|_| !fetches.owes_answer(to));
        let Some(number) = free else { return no_room };
        let (key, offset) = (remote.key.number(), remote.offset);
        let request = ReadRequest { number, length, key, offset, permit };
        if !self.packets().push_control(to, Control::Read(request)) {
            return no_room;
        }
        fetches.reads.add(to, number, LongRead { local, local_key, descriptor, context });
        Some(Ok(()))
    }

    /// Takes the refusal of a read.
    pub(super) fn end_read(
        &self,
        from: u32,
        number: u32,
        inbox: &mut Inbox,
    ) -> Result<(), Malformed> {
        let ended = inbox.fetches.reads.refused(from, number)?;
        inbox.arrived.extend(ended.map(completed).map(Arrived::Event));
        Ok(())
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

    fn announced(reads: &mut Reads, number: u32) -> (usize, bool) {
        let (length, destination) = reads.announced(1, number).unwrap();
        (length, destination.is_some())
    }

    #[test]
    fn a_read_ends_once_its_bytes_are_there() {
        let mut reads = reads();
        assert_eq!(announced(&mut reads, 0), (BYTES as usize, true));
        assert!(reads.refused(1, 0).is_err());
        assert_eq!(reads.taken(1, 0), Some((7, CompletionStatus::Success)));
        assert_eq!(reads.taken(1, 0), None);
        assert_eq!(reads.free(1), Some(0));
    }

    #[test]
    fn a_refused_read_ends() {
        let mut reads = reads();
        assert_eq!(reads.refused(1, 1), Ok(Some((8, REFUSED))));
        assert!(reads.refused(1, 1).is_err());
        assert_eq!(reads.free(1), Some(1));
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_announced_or_refused_again() {
        let mut reads = reads();
        for number in [0, 1] {
            announced(&mut reads, number);
            reads.unread(1, number);
        }
        assert_eq!(announced(&mut reads, 0), (BYTES as usize, true));
        assert_eq!(reads.taken(1, 0), Some((7, CompletionStatus::Success)));
        assert_eq!(reads.refused(1, 1), Ok(Some((8, REFUSED))));
    }

    #[test]
    fn a_cancelled_read_keeps_its_number_until_its_owner_has_ended_it() {
        let mut reads = reads();
        assert_eq!([reads.cancel(1, 0), reads.cancel(1, 1)], [Some(7), Some(8)]);
        assert_eq!(reads.find(|_, _| true), None);
        assert_eq!(reads.free(1), Some(2));
        assert_eq!(announced(&mut reads, 0), (BYTES as usize, false));
        assert_eq!(reads.free(1), Some(0));
        assert_eq!(reads.refused(1, 1), Ok(None));
    }

    #[test]
    fn a_read_that_is_cancelled_as_it_is_read_has_ended() {
        let mut reads = reads();
        announced(&mut reads, 0);
        assert_eq!(reads.find(|_, read| read.context == 7), Some((1, 0)));
        assert_eq!(reads.cancel(1, 0), Some(7));
        assert_eq!(reads.free(1), Some(0));
    }

    #[test]
    fn answers_to_no_read_are_malformed() {
        let mut reads = reads();
        announced(&mut reads, 0);
        for (from, number) in [(1, 0), (1, 2), (0, 0), (1, u32::MAX)] {
            assert!(reads.announced(from, number).is_err());
        }
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
