//! Windows of MPI, and transfers of bytes and numbers in them.
#![allow(unsafe_code, reason = "calls MPI")]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use crate::transport::mpi::call::check;
use crate::transport::mpi::{RawCommunicator, RawRequest, Refused, Shape, ffi};

/// A window of MPI, open to all its ranks.
#[derive(Clone, Copy, Debug)]
pub(in crate::transport::mpi) struct RawWindow(ffi::MPI_Win);

// SAFETY: a handle; what threads may do with it is for MPI to say.
unsafe impl Send for RawWindow {}
// SAFETY: as above.
unsafe impl Sync for RawWindow {}

/// Remote address of a transfer: elements of a rank from `first` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowAddress {
    pub(super) rank: c_int,
    pub(super) first: ffi::MPI_Aint,
}

impl RawWindow {
    /// Allocates `bytes` zero bytes at this rank, addressed in units. Blocks until all ranks of
    /// the communicator call it.
    pub(super) fn allocate(
        communicator: RawCommunicator,
        bytes: usize,
        unit: usize,
    ) -> Result<Self, Refused> {
        let mut memory: *mut u8 = ptr::null_mut();
        let mut window = MaybeUninit::uninit();
        let (size, unit, to) = (bytes as ffi::MPI_Aint, unit as c_int, (&raw mut memory).cast());
        // SAFETY: a constant of the library.
        let info = unsafe { ffi::RSMPI_INFO_NULL };
        let (all, made) = (communicator.handle(), window.as_mut_ptr());
        // SAFETY: the communicator lives; a pointer and a handle are written.
        check("MPI_Win_allocate", unsafe {
            ffi::MPI_Win_allocate(size, unit, info, all, to, made)
        })?;
        if bytes > 0 {
            // SAFETY: MPI has allocated as many bytes there, which nobody uses yet.
            unsafe { ptr::write_bytes(memory, 0, bytes) };
        }
        // SAFETY: written by the successful call above.
        let window = RawWindow(unsafe { window.assume_init() });
        let alone = ffi::MPI_MODE_NOCHECK as c_int;
        // SAFETY: the window lives and is not locked.
        check("MPI_Win_lock_all", unsafe { ffi::MPI_Win_lock_all(alone, window.0) })?;
        // SAFETY: the window is locked.
        check("MPI_Win_sync", unsafe { ffi::MPI_Win_sync(window.0) })?;
        Ok(window)
    }

    /// Frees the window. Blocks until all ranks call it.
    pub(in crate::transport::mpi) fn free(self) -> Result<(), Refused> {
        let mut handle = self.0;
        // SAFETY: the window lives and is locked.
        check("MPI_Win_unlock_all", unsafe { ffi::MPI_Win_unlock_all(handle) })?;
        // SAFETY: the window lives, and no copy of the handle is used afterwards.
        check("MPI_Win_free", unsafe { ffi::MPI_Win_free(&mut handle) })
    }

    /// Blocks until all transfers to `rank` are complete there.
    pub(super) fn flush(self, rank: c_int) -> Result<(), Refused> {
        // SAFETY: the window lives and is locked.
        check("MPI_Win_flush", unsafe { ffi::MPI_Win_flush(rank, self.0) })
    }

    /// Starts a write.
    ///
    /// # Safety
    ///
    /// The memory stays readable and unchanged until the request completes.
    pub(super) unsafe fn start_put(
        self,
        from: *const u8,
        shape: &Shape,
        to: WindowAddress,
        there: &Shape,
    ) -> Result<RawRequest, Refused> {
        // SAFETY: the caller keeps the memory; a new handle is written.
        started("MPI_Rput", |request| unsafe {
            let (from, WindowAddress { rank, first }) = (from.cast(), to);
            let (count, datatype) = (shape.count, shape.datatype);
            let (there, their) = (there.count, there.datatype);
            ffi::MPI_Rput(from, count, datatype, rank, first, there, their, self.0, request)
        })
    }

    /// Starts a read.
    ///
    /// # Safety
    ///
    /// Nobody else touches the memory until the request completes.
    pub(super) unsafe fn start_get(
        self,
        into: *mut u8,
        shape: &Shape,
        from: WindowAddress,
        there: &Shape,
    ) -> Result<RawRequest, Refused> {
        // SAFETY: the caller keeps the memory; a new handle is written.
        started("MPI_Rget", |request| unsafe {
            let (into, WindowAddress { rank, first }) = (into.cast(), from);
            let (count, datatype) = (shape.count, shape.datatype);
            let (there, their) = (there.count, there.datatype);
            ffi::MPI_Rget(into, count, datatype, rank, first, there, their, self.0, request)
        })
    }

    /// Starts an update of elements.
    ///
    /// # Safety
    ///
    /// The memory stays readable and unchanged until the request completes.
    pub(super) unsafe fn start_accumulate(
        self,
        from: *const u8,
        shape: &Shape,
        to: WindowAddress,
        there: &Shape,
        operation: ffi::MPI_Op,
    ) -> Result<RawRequest, Refused> {
        // SAFETY: the caller keeps the memory; a new handle is written.
        started("MPI_Raccumulate", |request| unsafe {
            let (from, WindowAddress { rank, first }) = (from.cast(), to);
            let (count, datatype) = (shape.count, shape.datatype);
            let (n, their) = (there.count, there.datatype);
            let (win, op) = (self.0, operation);
            ffi::MPI_Raccumulate(from, count, datatype, rank, first, n, their, op, win, request)
        })
    }

    /// Starts an update of one element with the first of `pair`; its previous value is written to
    /// the second.
    ///
    /// # Safety
    ///
    /// `pair` points to two elements, which nobody else touches until the request completes.
    pub(super) unsafe fn start_fetch(
        self,
        pair: *mut u8,
        size: usize,
        datatype: ffi::MPI_Datatype,
        at: WindowAddress,
        operation: ffi::MPI_Op,
    ) -> Result<RawRequest, Refused> {
        let result = pair.wrapping_add(size).cast::<c_void>();
        // SAFETY: the caller keeps the memory; a new handle is written.
        started("MPI_Rget_accumulate", |request| unsafe {
            let (value, ty, WindowAddress { rank, first }) = (pair.cast(), datatype, at);
            let (op, win) = (operation, self.0);
            ffi::MPI_Rget_accumulate(
                value, 1, ty, result, 1, ty, rank, first, 1, ty, op, win, request,
            )
        })
    }

    /// Replaces one element by the first of `three` if it equals the second, and writes its
    /// previous value to the third. Blocks until that is done.
    pub(super) fn compare_and_swap<T>(
        self,
        three: &mut [T; 3],
        datatype: ffi::MPI_Datatype,
        at: WindowAddress,
    ) -> Result<(), Refused> {
        let [new, expected, found] = three;
        let (new, expected) = ((&raw const *new).cast(), (&raw const *expected).cast());
        let (found, WindowAddress { rank, first }) = ((&raw mut *found).cast(), at);
        // SAFETY: three elements that live until the flush below has ended.
        check("MPI_Compare_and_swap", unsafe {
            ffi::MPI_Compare_and_swap(new, expected, found, datatype, rank, first, self.0)
        })?;
        self.flush(rank)
    }
}

fn started(
    call: &'static str,
    start: impl FnOnce(*mut ffi::MPI_Request) -> c_int,
) -> Result<RawRequest, Refused> {
    let mut request = MaybeUninit::uninit();
    check(call, start(request.as_mut_ptr()))?;
    // SAFETY: written by the successful call above.
    Ok(RawRequest::of(unsafe { request.assume_init() }))
}
