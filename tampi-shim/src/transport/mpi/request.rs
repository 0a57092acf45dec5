//! Requests of MPI, and the statuses with which they complete.
#![allow(unsafe_code, reason = "calls MPI")]

use std::ffi::c_int;
use std::mem::MaybeUninit;

use super::call::{check, refused};
use super::datatype::byte;
use super::slab::TestSome;
use super::{Refused, ffi};
use crate::error::Error;
use crate::rank::Rank;
use crate::status::Status;
use crate::tag::Tag;

/// Status of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawStatus {
    /// Rank that sent the message.
    pub(crate) source: u32,
    /// Tag of the message.
    pub(crate) tag: u32,
    /// Length of the message in bytes.
    pub(crate) bytes: usize,
    /// `true` if the operation was cancelled, so that it has no message.
    pub(crate) cancelled: bool,
}

/// Request of a started operation. Dropping it leaks the request while MPI still uses the buffer:
/// the caller tests it until it completes.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct RawRequest(ffi::MPI_Request);

// SAFETY: a request may be tested by any thread that may call MPI.
unsafe impl Send for RawRequest {}

impl RawRequest {
    pub(super) fn of(handle: ffi::MPI_Request) -> Self {
        RawRequest(handle)
    }

    /// Returns the null request.
    pub(super) fn null() -> Self {
        // SAFETY: a constant of the library.
        RawRequest(unsafe { ffi::RSMPI_REQUEST_NULL })
    }

    fn is_null(&self) -> bool {
        *self == RawRequest::null()
    }

    /// Tests the operation. Returns its outcome if it is complete; the request is null afterwards.
    ///
    /// **Errors**: the test failed, and MPI may still use the memory.
    #[inline]
    pub(crate) fn test(&mut self) -> Result<Option<Outcome>, Refused> {
        let (mut complete, mut status) = (0, MaybeUninit::<ffi::MPI_Status>::zeroed());
        // SAFETY: a request that was started, or null.
        let code = unsafe { ffi::MPI_Test(&mut self.0, &mut complete, status.as_mut_ptr()) };
        if complete == 0 && !self.is_null() {
            return check("MPI_Test", code).map(|()| None);
        }
        // SAFETY: zero bytes are a status, and MPI writes nothing else.
        let status = Completed(unsafe { status.assume_init() });
        if code != ffi::MPI_SUCCESS as c_int {
            self.release();
            return Ok(Some(Err(OperationError::of("MPI_Test", code, &status))));
        }
        Ok(Some(Ok(status)))
    }

    /// Asks MPI to cancel the operation. It still has to be tested until it completes.
    ///
    /// **Errors**: an error of MPI.
    pub(crate) fn cancel(&mut self) -> Result<(), Refused> {
        // SAFETY: a request that was started and is not complete.
        check("MPI_Cancel", unsafe { ffi::MPI_Cancel(&mut self.0) })
    }

    /// Frees the request of a failed operation, if MPI has not.
    fn release(&mut self) {
        if !self.is_null() {
            // SAFETY: the operation is over; MPI has not freed the request itself.
            unsafe { ffi::MPI_Request_free(&mut self.0) };
        }
    }
}

/// Outcome of a complete operation.
pub(crate) type Outcome = Result<Completed, OperationError>;

/// Status of a complete operation, as MPI has written it.
pub(crate) struct Completed(ffi::MPI_Status);

// SAFETY: a plain value; a pointer in it is MPI's own.
unsafe impl Send for Completed {}

/// Error of a failed operation, which is over.
#[derive(Debug)]
pub(crate) enum OperationError {
    /// The message is longer than its buffer. Not every MPI reports its length.
    Truncated(RawStatus),
    /// Any other error.
    Refused(Refused),
}

impl OperationError {
    #[cold]
    fn of(call: &'static str, code: c_int, status: &Completed) -> Self {
        let mut class = 0;
        // SAFETY: writes one number.
        let status_of_class = unsafe { ffi::MPI_Error_class(code, &mut class) };
        let truncated = check("MPI_Error_class", status_of_class).is_ok()
            && class == ffi::MPI_ERR_TRUNCATE as c_int;
        match RawStatus::of(&status.0) {
            Ok(status) if truncated => OperationError::Truncated(status),
            _ => OperationError::Refused(refused(call, code)),
        }
    }

    /// Returns the error of a receive into `room` bytes.
    #[cold]
    pub(super) fn error(self, room: u64) -> Error {
        match self {
            OperationError::Truncated(raw) => Error::Truncated {
                source_rank: Rank(raw.source),
                tag: Tag(raw.tag),
                sent: (raw.bytes as u64).max(room + 1),
                room,
            },
            OperationError::Refused(refused) => Error::Mpi(refused),
        }
    }
}

impl PartialEq for RawRequest {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl RawStatus {
    /// Converts to the status of this crate.
    pub(super) fn known(&self) -> Status {
        match self.cancelled {
            true => Status::CANCELLED,
            false => Status::new(Rank(self.source), Tag(self.tag), self.bytes as u64),
        }
    }

    /// Reads the status of a message that was found or received.
    pub(super) fn of(status: &ffi::MPI_Status) -> Result<Self, Refused> {
        let mut count = 0;
        // SAFETY: a status that MPI has filled.
        check("MPI_Get_count", unsafe { ffi::MPI_Get_count(status, byte(), &mut count) })?;
        let mut bytes = ffi::MPI_Count::from(count);
        if count == ffi::MPI_UNDEFINED {
            // SAFETY: a status that MPI has filled.
            let code = unsafe { ffi::MPI_Get_elements_x(status, byte(), &mut bytes) };
            check("MPI_Get_elements_x", code)?;
        }
        Ok(RawStatus {
            source: u32::try_from(status.MPI_SOURCE).unwrap_or(0),
            tag: u32::try_from(status.MPI_TAG).unwrap_or(0),
            bytes: usize::try_from(bytes).unwrap_or(0),
            cancelled: false,
        })
    }
}

impl Completed {
    /// Reads the status of a receive. `was_cancelled` if MPI was asked to cancel it.
    #[inline]
    pub(super) fn read(&self, was_cancelled: bool) -> Result<RawStatus, OperationError> {
        if was_cancelled && self.is_cancelled().map_err(OperationError::Refused)? {
            return Ok(RawStatus { source: 0, tag: 0, bytes: 0, cancelled: true });
        }
        RawStatus::of(&self.0).map_err(OperationError::Refused)
    }

    fn is_cancelled(&self) -> Result<bool, Refused> {
        let mut cancelled = 0;
        // SAFETY: a status that MPI has filled.
        let code = unsafe { ffi::MPI_Test_cancelled(&self.0, &mut cancelled) };
        check("MPI_Test_cancelled", code)?;
        Ok(cancelled != 0)
    }
}

/// `MPI_Testsome`, with buffers for its results.
#[derive(Default)]
pub(super) struct Tester {
    indices: Vec<c_int>,
    statuses: Vec<MaybeUninit<ffi::MPI_Status>>,
}

// SAFETY: statuses are plain values; a pointer in them is MPI's own.
unsafe impl Send for Tester {}

impl TestSome for Tester {
    type Request = RawRequest;
    type Outcome = Outcome;

    #[inline]
    fn test(&mut self, request: &mut RawRequest) -> Result<Option<Outcome>, Refused> {
        request.test()
    }

    fn test_some(
        &mut self,
        requests: &mut [RawRequest],
        completed: &mut Vec<(usize, Outcome)>,
    ) -> Result<(), Refused> {
        let Ok(count) = c_int::try_from(requests.len()) else {
            unreachable!("a request takes memory: there are never that many");
        };
        if self.indices.len() < requests.len() {
            self.indices.resize(requests.len(), 0);
            self.statuses.resize(requests.len(), MaybeUninit::zeroed());
        }
        let mut found = 0;
        let first = requests.as_mut_ptr().cast::<ffi::MPI_Request>();
        let (indices, statuses) = (self.indices.as_mut_ptr(), self.statuses.as_mut_ptr().cast());
        // SAFETY: three arrays of `count` elements; a `RawRequest` is a handle of MPI.
        let code = unsafe { ffi::MPI_Testsome(count, first, &mut found, indices, statuses) };
        let failed = code == ffi::MPI_ERR_IN_STATUS as c_int;
        if !failed {
            check("MPI_Testsome", code)?;
        }
        // Negative if no request is active.
        let found = usize::try_from(found).unwrap_or(0);
        for (&index, status) in self.indices[..found].iter().zip(&self.statuses) {
            // SAFETY: zero bytes are a status, and MPI writes nothing else.
            let status = Completed(unsafe { status.assume_init() });
            let code = status.0.MPI_ERROR;
            let outcome = if failed && code != ffi::MPI_SUCCESS as c_int {
                requests[index as usize].release();
                Err(OperationError::of("MPI_Testsome", code, &status))
            } else {
                Ok(status)
            };
            completed.push((index as usize, outcome));
        }
        Ok(())
    }
}
