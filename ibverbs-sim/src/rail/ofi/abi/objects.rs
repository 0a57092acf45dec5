#![allow(unsafe_code, reason = "functions of the library are unsafe to call")]
//! Objects of libfabric, and the functions that they have.
//!
//! Every object begins with a [`Fid`], which has the functions of all objects, and then has tables of
//! those of its kind. Functions that this crate does not call are numbers as long as pointers.

use std::ffi::{c_int, c_void};

use super::{Address, Completion, ErrorEntry, Info, Message, operations::RmaMessage};

/// Function that this crate does not call.
type Unused = usize;
type Object<T> = *mut T;

/// Beginning of every object; `struct fid`.
#[repr(C)]
pub(in super::super) struct Fid {
    pub(in super::super) fclass: usize,
    pub(in super::super) context: *mut c_void,
    pub(in super::super) ops: *const Calls,
}

type Close = unsafe extern "C" fn(Object<Fid>) -> c_int;

/// Functions of every object; `struct fi_ops`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct Calls {
    pub(in super::super) size: usize,
    pub(in super::super) close: Close,
    pub(in super::super) bind: unsafe extern "C" fn(Object<Fid>, Object<Fid>, u64) -> c_int,
    pub(in super::super) control: unsafe extern "C" fn(Object<Fid>, c_int, *mut c_void) -> c_int,
}

/// Network; `struct fid_fabric`.
#[repr(C)]
pub(in super::super) struct Fabric {
    pub(in super::super) fid: Fid,
    pub(in super::super) ops: *const FabricCalls,
    pub(in super::super) api_version: u32,
}

/// Functions of a network; `struct fi_ops_fabric`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct FabricCalls {
    pub(in super::super) size: usize,
    pub(in super::super) domain:
        unsafe extern "C" fn(Object<Fabric>, *mut Info, *mut Object<Domain>, *mut c_void) -> c_int,
    pub(in super::super) passive_ep: Unused,
    pub(in super::super) eq_open: Unused,
    pub(in super::super) wait_open: Unused,
    pub(in super::super) trywait:
        unsafe extern "C" fn(Object<Fabric>, *mut Object<Fid>, c_int) -> c_int,
}

/// Adapter or interface; `struct fid_domain`.
#[repr(C)]
pub(in super::super) struct Domain {
    pub(in super::super) fid: Fid,
    pub(in super::super) ops: *const DomainCalls,
    pub(in super::super) mr: *const MemoryCalls,
}

/// Functions of a domain; `struct fi_ops_domain`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct DomainCalls {
    pub(in super::super) size: usize,
    pub(in super::super) av_open: unsafe extern "C" fn(
        Object<Domain>,
        *mut AddressVectorAttributes,
        *mut Object<AddressVector>,
        *mut c_void,
    ) -> c_int,
    pub(in super::super) cq_open: unsafe extern "C" fn(
        Object<Domain>,
        *mut CompletionQueueAttributes,
        *mut Object<CompletionQueue>,
        *mut c_void,
    ) -> c_int,
    pub(in super::super) endpoint: unsafe extern "C" fn(
        Object<Domain>,
        *mut Info,
        *mut Object<Endpoint>,
        *mut c_void,
    ) -> c_int,
}

/// Functions of a domain for memory; `struct fi_ops_mr`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct MemoryCalls {
    pub(in super::super) size: usize,
    /// Registers `buf`, `len`, with access, offset, requested key and flags.
    pub(in super::super) reg: unsafe extern "C" fn(
        Object<Fid>,
        *const c_void,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut Object<MemoryRegion>,
        *mut c_void,
    ) -> c_int,
}

/// Memory that was registered; `struct fid_mr`.
#[repr(C)]
pub(in super::super) struct MemoryRegion {
    pub(in super::super) fid: Fid,
    pub(in super::super) mem_desc: *mut c_void,
    pub(in super::super) key: u64,
}

/// Addresses of endpoints; `struct fid_av`.
#[repr(C)]
pub(in super::super) struct AddressVector {
    pub(in super::super) fid: Fid,
    pub(in super::super) ops: *const AddressVectorCalls,
}

/// Settings of an address vector; `struct fi_av_attr`, with its `type` first.
#[repr(C)]
pub(in super::super) struct AddressVectorAttributes {
    pub(in super::super) kind: u32,
    pub(in super::super) rx_ctx_bits: c_int,
    pub(in super::super) count: usize,
    pub(in super::super) ep_per_node: usize,
    pub(in super::super) name: *const c_void,
    pub(in super::super) map_addr: *mut c_void,
    pub(in super::super) flags: u64,
}

/// Functions of an address vector; `struct fi_ops_av`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct AddressVectorCalls {
    pub(in super::super) size: usize,
    pub(in super::super) insert: unsafe extern "C" fn(
        Object<AddressVector>,
        *const c_void,
        usize,
        *mut Address,
        u64,
        *mut c_void,
    ) -> c_int,
}

/// Queue of completions; `struct fid_cq`.
#[repr(C)]
pub(in super::super) struct CompletionQueue {
    pub(in super::super) fid: Fid,
    pub(in super::super) ops: *const CompletionQueueCalls,
}

/// Settings of a completion queue; `struct fi_cq_attr`.
#[repr(C)]
pub(in super::super) struct CompletionQueueAttributes {
    pub(in super::super) size: usize,
    pub(in super::super) flags: u64,
    pub(in super::super) format: u32,
    pub(in super::super) wait_obj: u32,
    pub(in super::super) signaling_vector: c_int,
    pub(in super::super) wait_cond: u32,
    pub(in super::super) wait_set: *mut c_void,
}

/// Functions of a completion queue; `struct fi_ops_cq`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct CompletionQueueCalls {
    pub(in super::super) size: usize,
    pub(in super::super) read:
        unsafe extern "C" fn(Object<CompletionQueue>, *mut Completion, usize) -> isize,
    pub(in super::super) readfrom: Unused,
    pub(in super::super) readerr:
        unsafe extern "C" fn(Object<CompletionQueue>, *mut ErrorEntry, u64) -> isize,
    pub(in super::super) sread: unsafe extern "C" fn(
        Object<CompletionQueue>,
        *mut Completion,
        usize,
        *const c_void,
        c_int,
    ) -> isize,
}

/// End of communication; `struct fid_ep`.
#[repr(C)]
pub(in super::super) struct Endpoint {
    pub(in super::super) fid: Fid,
    pub(in super::super) ops: *const EndpointCalls,
    pub(in super::super) cm: *const NameCalls,
    pub(in super::super) msg: *const MessageCalls,
    pub(in super::super) rma: *const RmaCalls,
}

/// Functions of an endpoint; `struct fi_ops_ep`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct EndpointCalls {
    pub(in super::super) size: usize,
    pub(in super::super) cancel: Unused,
    pub(in super::super) getopt: Unused,
    pub(in super::super) setopt:
        unsafe extern "C" fn(Object<Fid>, c_int, c_int, *const c_void, usize) -> c_int,
}

/// Functions of an endpoint for its name; `struct fi_ops_cm`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct NameCalls {
    pub(in super::super) size: usize,
    pub(in super::super) setname: Unused,
    pub(in super::super) getname:
        unsafe extern "C" fn(Object<Fid>, *mut c_void, *mut usize) -> c_int,
}

/// Functions of an endpoint for messages; `struct fi_ops_msg`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct MessageCalls {
    pub(in super::super) size: usize,
    pub(in super::super) recv: Unused,
    pub(in super::super) recvv: Unused,
    pub(in super::super) recvmsg:
        unsafe extern "C" fn(Object<Endpoint>, *const Message, u64) -> isize,
    /// Sends `buf`, `len`, with descriptor, address and context.
    pub(in super::super) send: unsafe extern "C" fn(
        Object<Endpoint>,
        *const c_void,
        usize,
        *mut c_void,
        Address,
        *mut c_void,
    ) -> isize,
    pub(in super::super) sendv: Unused,
    pub(in super::super) sendmsg: Unused,
    pub(in super::super) inject:
        unsafe extern "C" fn(Object<Endpoint>, *const c_void, usize, Address) -> isize,
}

/// Functions of an endpoint for memory of peers; `struct fi_ops_rma`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct RmaCalls {
    pub(in super::super) size: usize,
    pub(in super::super) read: Unused,
    pub(in super::super) readv: Unused,
    pub(in super::super) readmsg:
        unsafe extern "C" fn(Object<Endpoint>, *const RmaMessage, u64) -> isize,
    pub(in super::super) write: Unused,
    pub(in super::super) writev: Unused,
    pub(in super::super) writemsg:
        unsafe extern "C" fn(Object<Endpoint>, *const RmaMessage, u64) -> isize,
}
