//! Arguments of operations, and their completions.

use std::ffi::{c_int, c_void};

use super::Address;

/// Message that is sent, or room for some; `struct fi_msg`.
#[repr(C)]
pub(in super::super) struct Message {
    pub(in super::super) msg_iov: *const libc::iovec,
    pub(in super::super) desc: *mut *mut c_void,
    pub(in super::super) iov_count: usize,
    pub(in super::super) addr: Address,
    pub(in super::super) context: *mut c_void,
    pub(in super::super) data: u64,
}

/// Memory of a peer; `struct fi_rma_iov`.
#[repr(C)]
pub(in super::super) struct RmaAddress {
    pub(in super::super) addr: u64,
    pub(in super::super) len: usize,
    pub(in super::super) key: u64,
}

/// Write to memory of a peer, or read from there; `struct fi_msg_rma`.
#[repr(C)]
pub(in super::super) struct RmaMessage {
    pub(in super::super) msg_iov: *const libc::iovec,
    pub(in super::super) desc: *mut *mut c_void,
    pub(in super::super) iov_count: usize,
    pub(in super::super) addr: Address,
    pub(in super::super) rma_iov: *const RmaAddress,
    pub(in super::super) rma_iov_count: usize,
    pub(in super::super) context: *mut c_void,
    pub(in super::super) data: u64,
}

/// Completion; `struct fi_cq_data_entry`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct Completion {
    pub(in super::super) op_context: *mut c_void,
    pub(in super::super) flags: u64,
    pub(in super::super) len: usize,
    pub(in super::super) buf: *mut c_void,
    pub(in super::super) data: u64,
}

impl Completion {
    /// Place for a completion.
    pub(in super::super) const EMPTY: Self = Self {
        op_context: std::ptr::null_mut(),
        flags: 0,
        len: 0,
        buf: std::ptr::null_mut(),
        data: 0,
    };
}

/// Completion of an operation that has failed; `struct fi_cq_err_entry`.
#[repr(C)]
pub(in super::super) struct ErrorEntry {
    pub(in super::super) op_context: *mut c_void,
    pub(in super::super) flags: u64,
    pub(in super::super) len: usize,
    pub(in super::super) buf: *mut c_void,
    pub(in super::super) data: u64,
    pub(in super::super) tag: u64,
    pub(in super::super) olen: usize,
    pub(in super::super) err: c_int,
    pub(in super::super) prov_errno: c_int,
    pub(in super::super) err_data: *mut c_void,
    pub(in super::super) err_data_size: usize,
}
