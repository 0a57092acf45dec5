//! Communicators of MPI, and messages of bytes in them.
#![allow(unsafe_code, reason = "calls MPI")]

use std::ffi::c_int;
use std::mem::MaybeUninit;

use super::call::check;
use super::datatype::Shape;
use super::{RawRequest, RawStatus, Refused, ffi};
use crate::transport::SendMode;

/// A communicator of MPI: ranks, and a context of its own for matching.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RawCommunicator(ffi::MPI_Comm);

// SAFETY: a handle; what threads may do with it is for MPI to say.
unsafe impl Send for RawCommunicator {}
// SAFETY: as above.
unsafe impl Sync for RawCommunicator {}

/// A message that a matched probe of MPI has taken. It has to be received.
#[derive(Debug)]
pub(crate) struct Matched(ffi::MPI_Message);

// SAFETY: a handle; what threads may do with it is for MPI to say.
unsafe impl Send for Matched {}

impl RawCommunicator {
    /// Returns `MPI_COMM_WORLD`.
    pub(crate) fn world() -> Self {
        // SAFETY: a constant of the library.
        RawCommunicator(unsafe { ffi::RSMPI_COMM_WORLD })
    }

    pub(crate) fn handle(self) -> ffi::MPI_Comm {
        self.0
    }

    /// Makes failed calls return instead of ending the program.
    pub(crate) fn return_errors(self) -> Result<(), Refused> {
        // SAFETY: a constant of the library.
        let handler = unsafe { ffi::RSMPI_ERRORS_RETURN };
        // SAFETY: both handles live.
        check("MPI_Comm_set_errhandler", unsafe { ffi::MPI_Comm_set_errhandler(self.0, handler) })
    }

    pub(crate) fn rank(self) -> Result<u32, Refused> {
        let mut rank = 0;
        // SAFETY: writes one number.
        check("MPI_Comm_rank", unsafe { ffi::MPI_Comm_rank(self.0, &mut rank) })?;
        Ok(rank as u32)
    }

    pub(crate) fn size(self) -> Result<u32, Refused> {
        let mut size = 0;
        // SAFETY: writes one number.
        check("MPI_Comm_size", unsafe { ffi::MPI_Comm_size(self.0, &mut size) })?;
        Ok(size as u32)
    }

    /// Creates the communicator of the ranks on this machine. Blocks until all ranks call it.
    pub(crate) fn of_this_machine(self) -> Result<Self, Refused> {
        let mut here = self;
        // SAFETY: a constant of the library.
        let shared = unsafe { ffi::RSMPI_COMM_TYPE_SHARED };
        // SAFETY: a constant of the library.
        let info = unsafe { ffi::RSMPI_INFO_NULL };
        // SAFETY: a new handle is written.
        let code = unsafe { ffi::MPI_Comm_split_type(self.0, shared, 0, info, &mut here.0) };
        check("MPI_Comm_split_type", code)?;
        Ok(here)
    }

    /// Combines the bits of all ranks by or. Blocks until all ranks call it.
    pub(crate) fn unite(self, bits: &mut [u64]) -> Result<(), Refused> {
        let own = bits.to_vec();
        // SAFETY: a constant of the library.
        let word = unsafe { ffi::RSMPI_UINT64_T };
        // SAFETY: a constant of the library.
        let or = unsafe { ffi::RSMPI_BOR };
        let (from, to, count) = (own.as_ptr().cast(), bits.as_mut_ptr().cast(), own.len() as c_int);
        // SAFETY: two arrays of `count` words.
        let code = unsafe { ffi::MPI_Allreduce(from, to, count, word, or, self.0) };
        check("MPI_Allreduce", code)
    }

    /// Sends words. Blocks until they may be received.
    pub(crate) fn send_words(self, words: &[u64], to: u32) -> Result<(), Refused> {
        // SAFETY: a constant of the library.
        let word = unsafe { ffi::RSMPI_UINT64_T };
        let (from, count, to) = (words.as_ptr().cast(), words.len() as c_int, to as c_int);
        // SAFETY: an array of `count` words.
        check("MPI_Send", unsafe { ffi::MPI_Send(from, count, word, to, 0, self.0) })
    }

    /// Receives the words of the next message of a rank. Blocks until they are there.
    pub(crate) fn receive_words<const N: usize>(self, from: u32) -> Result<[u64; N], Refused> {
        let (mut words, mut status) = ([0; N], MaybeUninit::uninit());
        // SAFETY: a constant of the library.
        let word = unsafe { ffi::RSMPI_UINT64_T };
        let (into, count, from) = (words.as_mut_ptr().cast(), N as c_int, from as c_int);
        let status = status.as_mut_ptr();
        // SAFETY: an array of `count` words; a status is written.
        check("MPI_Recv", unsafe { ffi::MPI_Recv(into, count, word, from, 0, self.0, status) })?;
        Ok(words)
    }

    /// Creates a communicator of the same ranks. Blocks until all ranks call it.
    pub(crate) fn duplicate(self) -> Result<Self, Refused> {
        let mut made = self;
        // SAFETY: a new handle is written.
        check("MPI_Comm_dup", unsafe { ffi::MPI_Comm_dup(self.0, &mut made.0) })?;
        Ok(made)
    }

    /// Creates a communicator of some of the ranks, in the given order. Blocks until all of them
    /// call it with the same `tag`, which separates concurrent calls.
    pub(crate) fn of_some(self, ranks: &[c_int], tag: u32) -> Result<Self, Refused> {
        let all = Group::of(self)?;
        let some = all.some(ranks)?;
        let mut made = self;
        // SAFETY: both handles live; a new one is written.
        let code = unsafe { ffi::MPI_Comm_create_group(self.0, some.0, tag as c_int, &mut made.0) };
        check("MPI_Comm_create_group", code)?;
        made.return_errors()?;
        Ok(made)
    }

    /// Starts a barrier.
    pub(crate) fn start_barrier(self) -> Result<RawRequest, Refused> {
        let mut request = MaybeUninit::uninit();
        // SAFETY: the communicator lives; a new handle is written.
        let code = unsafe { ffi::MPI_Ibarrier(self.0, request.as_mut_ptr()) };
        check("MPI_Ibarrier", code)?;
        // SAFETY: written by the successful call above.
        Ok(RawRequest::of(unsafe { request.assume_init() }))
    }

    /// Frees the communicator. No operation may be under way in it, and no copy may be used
    /// afterwards.
    pub(crate) fn free(self) -> Result<(), Refused> {
        let mut handle = self.0;
        // SAFETY: a communicator that lives.
        check("MPI_Comm_free", unsafe { ffi::MPI_Comm_free(&mut handle) })
    }

    /// Starts to send the bytes of `shape`.
    ///
    /// # Safety
    ///
    /// The bytes stay readable and unchanged until the request completes.
    #[inline]
    pub(crate) unsafe fn start_send(
        self,
        mode: SendMode,
        from: *const u8,
        shape: &Shape,
        to: u32,
        tag: u32,
    ) -> Result<RawRequest, Refused> {
        let (count, datatype) = (shape.count, shape.datatype);
        let (to, tag, from) = (to as c_int, tag as c_int, from.cast());
        let mut request = MaybeUninit::uninit();
        let started = request.as_mut_ptr();
        let (call, code) = match mode {
            // A buffered send is a standard send of a copy.
            SendMode::Standard | SendMode::Buffered => ("MPI_Isend", {
                // SAFETY: the caller keeps the bytes; a new handle is written.
                unsafe { ffi::MPI_Isend(from, count, datatype, to, tag, self.0, started) }
            }),
            SendMode::Synchronous => ("MPI_Issend", {
                // SAFETY: the caller keeps the bytes; a new handle is written.
                unsafe { ffi::MPI_Issend(from, count, datatype, to, tag, self.0, started) }
            }),
        };
        check(call, code)?;
        // SAFETY: written by the successful call above.
        Ok(RawRequest::of(unsafe { request.assume_init() }))
    }

    /// Starts to receive a message of at most the length of `shape`. `None` accepts any source, or
    /// any tag.
    ///
    /// # Safety
    ///
    /// Nobody else touches the bytes until the request completes.
    #[inline]
    pub(crate) unsafe fn start_receive(
        self,
        into: *mut u8,
        shape: &Shape,
        source: Option<u32>,
        tag: Option<u32>,
    ) -> Result<RawRequest, Refused> {
        let (count, datatype) = (shape.count, shape.datatype);
        let (source, tag, into) = (any_source(source), any_tag(tag), into.cast());
        let mut request = MaybeUninit::uninit();
        let started = request.as_mut_ptr();
        // SAFETY: the caller keeps the bytes; a new handle is written.
        let code = unsafe { ffi::MPI_Irecv(into, count, datatype, source, tag, self.0, started) };
        check("MPI_Irecv", code)?;
        // SAFETY: written by the successful call above.
        Ok(RawRequest::of(unsafe { request.assume_init() }))
    }

    /// Probes for a message without taking it.
    pub(crate) fn probe(
        self,
        source: Option<u32>,
        tag: Option<u32>,
    ) -> Result<Option<RawStatus>, Refused> {
        let (mut found, mut status) = (0, MaybeUninit::zeroed());
        let (source, tag, to) = (any_source(source), any_tag(tag), status.as_mut_ptr());
        // SAFETY: the communicator lives; two values are written.
        let code = unsafe { ffi::MPI_Iprobe(source, tag, self.0, &mut found, to) };
        check("MPI_Iprobe", code)?;
        if found == 0 {
            return Ok(None);
        }
        // SAFETY: MPI fills the status of what it has found.
        RawStatus::of(unsafe { status.assume_init_ref() }).map(Some)
    }

    /// Probes for a message and removes it from matching.
    pub(crate) fn probe_matched(
        self,
        source: Option<u32>,
        tag: Option<u32>,
    ) -> Result<Option<(Matched, RawStatus)>, Refused> {
        let (mut found, mut status) = (0, MaybeUninit::zeroed());
        let mut message = MaybeUninit::uninit();
        let (source, tag) = (any_source(source), any_tag(tag));
        let (taken, to) = (message.as_mut_ptr(), status.as_mut_ptr());
        // SAFETY: the communicator lives; three values are written.
        let code = unsafe { ffi::MPI_Improbe(source, tag, self.0, &mut found, taken, to) };
        check("MPI_Improbe", code)?;
        if found == 0 {
            return Ok(None);
        }
        // SAFETY: MPI fills the status of what it has found.
        let status = RawStatus::of(unsafe { status.assume_init_ref() })?;
        // SAFETY: written because a message was found.
        Ok(Some((Matched(unsafe { message.assume_init() }), status)))
    }
}

impl Matched {
    /// Starts to receive the message.
    ///
    /// # Safety
    ///
    /// Nobody else touches the bytes until the request completes.
    pub(crate) unsafe fn start_receive(
        mut self,
        into: *mut u8,
        shape: &Shape,
    ) -> Result<RawRequest, Refused> {
        let mut request = MaybeUninit::uninit();
        let (message, started) = (&mut self.0, request.as_mut_ptr());
        let (count, datatype) = (shape.count, shape.datatype);
        // SAFETY: a message that was matched and not received; the caller keeps the bytes.
        let code = unsafe { ffi::MPI_Imrecv(into.cast(), count, datatype, message, started) };
        check("MPI_Imrecv", code)?;
        // SAFETY: written by the successful call above.
        Ok(RawRequest::of(unsafe { request.assume_init() }))
    }
}

/// A group of MPI: ranks in an order.
struct Group(ffi::MPI_Group);

impl Group {
    fn of(communicator: RawCommunicator) -> Result<Self, Refused> {
        let mut group = MaybeUninit::uninit();
        // SAFETY: the communicator lives; a new handle is written.
        let code = unsafe { ffi::MPI_Comm_group(communicator.0, group.as_mut_ptr()) };
        check("MPI_Comm_group", code)?;
        // SAFETY: written by the successful call above.
        Ok(Group(unsafe { group.assume_init() }))
    }

    fn some(&self, ranks: &[c_int]) -> Result<Self, Refused> {
        let mut group = MaybeUninit::uninit();
        let (count, first) = (ranks.len() as c_int, ranks.as_ptr());
        // SAFETY: an array of `count` numbers; a new handle is written.
        let code = unsafe { ffi::MPI_Group_incl(self.0, count, first, group.as_mut_ptr()) };
        check("MPI_Group_incl", code)?;
        // SAFETY: written by the successful call above.
        Ok(Group(unsafe { group.assume_init() }))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: made above and freed once.
        unsafe { ffi::MPI_Group_free(&mut self.0) };
    }
}

fn any_source(source: Option<u32>) -> c_int {
    source.map_or(ffi::MPI_ANY_SOURCE, |source| source as c_int)
}

fn any_tag(tag: Option<u32>) -> c_int {
    tag.map_or(ffi::MPI_ANY_TAG, |tag| tag as c_int)
}
