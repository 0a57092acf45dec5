#![allow(unsafe_code, reason = "the kernel copies between the memory of two processes")]
//! Copies between the memories of processes, by the kernel (`process_vm_readv`, `process_vm_writev`).
//!
//! The kernel checks the remote side: an address where nothing is mapped is an error of the call.

use std::{io, ptr::NonNull};

use rustix::process::Pid;

use crate::CompletionStatus;

/// Direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    ToPeer,
    FromPeer,
}

/// Copies between `local` and the memory of a process from `remote` on.
///
/// # Safety
///
/// `local` must be valid for reads; if the copy comes from the peer, for writes.
pub(super) unsafe fn copy(
    pid: Pid,
    direction: Direction,
    local: NonNull<[u8]>,
    remote: u64,
) -> CompletionStatus {
    let mut done = 0;
    while done < local.len() {
        // SAFETY: what was done is less than the memory.
        let start = unsafe { local.cast::<u8>().add(done) };
        let here = libc::iovec { iov_base: start.as_ptr().cast(), iov_len: local.len() - done };
        let there_start = std::ptr::without_provenance_mut((remote as usize).wrapping_add(done));
        let there = libc::iovec { iov_base: there_start, iov_len: here.iov_len };
        let pid = pid.as_raw_nonzero().get();
        let count = match direction {
            // SAFETY: `here` is valid for reads by the contract of this function.
            Direction::ToPeer => unsafe { libc::process_vm_writev(pid, &here, 1, &there, 1, 0) },
            // SAFETY: `here` is valid for writes by the contract of this function.
            Direction::FromPeer => unsafe { libc::process_vm_readv(pid, &here, 1, &there, 1, 0) },
        };
        match usize::try_from(count) {
            Ok(0) => return CompletionStatus::RemoteOperation,
            Ok(count) => done += count,
            Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH) => {
                return CompletionStatus::RetryExceeded;
            }
            Err(_) => return CompletionStatus::RemoteOperation,
        }
    }
    CompletionStatus::Success
}

/// Returns `true` if this process may read the memory of a peer: the word at `address` there is
/// `expected`.
pub(super) fn probe(pid: Pid, address: u64, expected: u64) -> bool {
    let mut word = [0; size_of::<u64>()];
    let local = NonNull::from(&mut word[..]);
    // SAFETY: `local` is a word of this function.
    let status = unsafe { copy(pid, Direction::FromPeer, local, address) };
    status == CompletionStatus::Success && u64::from_ne_bytes(word) == expected
}
