#![allow(unsafe_code, reason = "functions of the library are called")]
//! Completion queues: completions of an endpoint, and the descriptor to sleep on.

use std::{
    ffi::c_int,
    os::fd::BorrowedFd,
    ptr,
    sync::atomic::{AtomicBool, Ordering},
};

use super::{
    OfiError,
    abi::{self, Completion, ErrorEntry},
    object::{Object, make},
    strict::Late,
};

/// Entries of a completion queue.
const COMPLETIONS: usize = 4096;
/// Shortest wait for a completion that is one, in milliseconds.
const SHORTEST_WAIT: c_int = 1;

/// A completion queue. It is closed after the endpoint that it is bound to.
pub(super) struct Queue {
    calls: abi::CompletionQueueCalls,
    object: Object<abi::CompletionQueue>,
    /// Descriptor to sleep on, if the provider has one.
    descriptor: Option<c_int>,
    /// Completions that a strict form holds back.
    late: Option<Late>,
    /// `true` if the next take waits for a completion.
    is_to_wait: AtomicBool,
}

/// Outcome of a read of a completion queue.
pub(super) enum Taken {
    /// So many completions were taken.
    Completions(usize),
    /// An operation has failed.
    Failure(ErrorEntry),
    Nothing,
}

impl Queue {
    /// Opens a queue of a domain, with a descriptor where the provider has one.
    pub(super) fn open(
        domain: &Object<abi::Domain>,
        calls: &abi::DomainCalls,
        late: Option<Late>,
        check: impl Fn(&'static str, c_int) -> Result<(), OfiError>,
    ) -> Result<Self, OfiError> {
        let open = |wait_obj| {
            make(|place| {
                let mut attributes = abi::CompletionQueueAttributes {
                    size: COMPLETIONS,
                    flags: 0,
                    format: abi::COMPLETION_FORMAT_DATA,
                    wait_obj,
                    signaling_vector: 0,
                    wait_cond: 0,
                    wait_set: ptr::null_mut(),
                };
                let (attributes, none) = (&raw mut attributes, ptr::null_mut());
                // SAFETY: the domain is open, and the settings are whole.
                let result = unsafe { (calls.cq_open)(domain.pointer(), attributes, place, none) };
                check("fi_cq_open", result)
            })
        };
        // Not every provider has something to sleep on.
        let with_descriptor: Result<Object<abi::CompletionQueue>, _> = open(abi::WAIT_DESCRIPTOR);
        let may_sleep = with_descriptor.is_ok();
        let object = with_descriptor.or_else(|_| open(abi::WAIT_NONE))?;
        let descriptor = object.wait_descriptor().filter(|_| may_sleep);
        // SAFETY: the functions of an object stay as long as that.
        let calls = unsafe { object.record().ops.read() };
        Ok(Self { calls, object, descriptor, late, is_to_wait: AtomicBool::new(false) })
    }

    pub(super) fn object(&self) -> &Object<abi::CompletionQueue> {
        &self.object
    }

    /// Returns the descriptor to sleep on, if the provider has one.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the descriptor is open as long as the completion queue is.
        self.descriptor.map(|descriptor| unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    /// Returns `true` if completions were held back, for which no descriptor is readable.
    pub(super) fn has_late(&self) -> bool {
        self.late.as_ref().is_some_and(Late::is_some)
    }

    /// Has the next take wait for a completion, which resets the descriptor if that is readable without one.
    pub(super) fn reset_descriptor(&self) {
        self.is_to_wait.store(self.descriptor.is_some(), Ordering::Relaxed);
    }

    /// Takes completions, or a failure.
    pub(super) fn take(&self, completions: &mut [Completion]) -> Taken {
        let taken = self.take_now(completions);
        let Some(late) = &self.late else { return taken };
        match taken {
            Taken::Completions(count) => late.add(&completions[..count]),
            Taken::Nothing => {}
            failure @ Taken::Failure(_) => return failure,
        }
        match late.take(completions) {
            0 => Taken::Nothing,
            count => Taken::Completions(count),
        }
    }

    fn take_now(&self, completions: &mut [Completion]) -> Taken {
        let queue = self.object.pointer();
        let (place, room) = (completions.as_mut_ptr(), completions.len());
        let count = if self.is_to_wait.swap(false, Ordering::Relaxed) {
            // SAFETY: the completion queue is open; there is room for so many entries of its format.
            unsafe { (self.calls.sread)(queue, place, room, ptr::null(), SHORTEST_WAIT) }
        } else {
            // SAFETY: as above.
            unsafe { (self.calls.read)(queue, place, room) }
        };
        if count > 0 {
            return Taken::Completions((count as usize).min(completions.len()));
        }
        if count != -(abi::ERROR_AVAILABLE as isize) {
            return Taken::Nothing;
        }
        let mut entry = ErrorEntry {
            op_context: ptr::null_mut(),
            flags: 0,
            len: 0,
            buf: ptr::null_mut(),
            data: 0,
            tag: 0,
            olen: 0,
            err: 0,
            prov_errno: 0,
            err_data: ptr::null_mut(),
            err_data_size: 0,
        };
        // SAFETY: the completion queue is open, and the entry has a place.
        let count = unsafe { (self.calls.readerr)(queue, &raw mut entry, 0) };
        if count == 1 { Taken::Failure(entry) } else { Taken::Nothing }
    }
}
