//! Binary interface of libfabric, of its version 1.17, which later ones keep under the same symbol
//! versions.
//!
//! Fields have the names of the C headers, so that the tests compare sizes and offsets with those that
//! the C compiler finds. Tables of functions end with the last function that this crate calls: later
//! versions append to them.
//!
//! - `info`: the description of a provider, as asked for and as found.
//! - `objects`: objects, and the functions that they have.
//! - `operations`: arguments of operations, and their completions.

mod info;
mod objects;
mod operations;

pub(super) use self::info::{DomainAttributes, FabricAttributes, Info};
pub(super) use self::objects::{
    AddressVector, AddressVectorAttributes, AddressVectorCalls, Calls, CompletionQueue,
    CompletionQueueAttributes, CompletionQueueCalls, Domain, DomainCalls, Endpoint, Fabric,
    FabricCalls, Fid, MemoryCalls, MemoryRegion, MessageCalls, RmaCalls,
};
pub(super) use self::operations::{Completion, ErrorEntry, Message, RmaAddress, RmaMessage};

/// Version 1.17 of the interface.
pub(super) const API_VERSION: u32 = 1 << 16 | 17;

/// Address of an endpoint, in an address vector.
pub(super) type Address = u64;
pub(super) const ADDRESS_UNSPECIFIED: Address = u64::MAX;

pub(super) const MSG: u64 = 1 << 1;
pub(super) const RMA: u64 = 1 << 2;
pub(super) const READ: u64 = 1 << 8;
pub(super) const RECV: u64 = 1 << 10;
pub(super) const TRANSMIT: u64 = 1 << 11;
pub(super) const REMOTE_READ: u64 = 1 << 12;
pub(super) const MULTI_RECV: u64 = 1 << 16;

pub(super) const COMPLETION: u64 = 1 << 24;

/// Mode bits: operations bring memory of 4 or 8 pointers that the provider uses.
pub(super) const CONTEXT: u64 = 1 << 59;
pub(super) const CONTEXT2: u64 = 1 << 52;

pub(super) const MR_LOCAL: i32 = 1 << 2;
pub(super) const MR_VIRT_ADDR: i32 = 1 << 4;
pub(super) const MR_ALLOCATED: i32 = 1 << 5;
pub(super) const MR_PROV_KEY: i32 = 1 << 6;
pub(super) const MR_ENDPOINT: i32 = 1 << 9;

/// Order of messages to one peer.
pub(super) const ORDER_SAS: u64 = 1 << 8;

pub(super) const PROGRESS_MANUAL: u32 = 2;
pub(super) const THREAD_SAFE: u32 = 1;
pub(super) const RESOURCES_MANAGED: u32 = 2;
pub(super) const ENDPOINT_RDM: u32 = 3;
pub(super) const ADDRESSES_AS_TABLE: u32 = 2;

/// Formats of addresses.
pub(super) const FORMAT_IPV4: u32 = 2;
pub(super) const FORMAT_IPV6: u32 = 3;

pub(super) const COMPLETION_FORMAT_DATA: u32 = 3;
pub(super) const WAIT_NONE: u32 = 0;
pub(super) const WAIT_DESCRIPTOR: u32 = 3;

/// Commands of objects.
pub(super) const GET_WAIT: i32 = 5;
pub(super) const ENABLE: i32 = 6;

/// Level and name of the option for the room that receives of several messages leave.
pub(super) const OPTION_ENDPOINT: i32 = 0;
pub(super) const OPTION_MIN_MULTI_RECV: i32 = 0;

/// Error numbers, beside those of the operating system.
pub(super) const AGAIN: i32 = libc::EAGAIN;
pub(super) const NO_DATA: i32 = libc::ENODATA;
pub(super) const CANCELED: i32 = libc::ECANCELED;
pub(super) const ERROR_AVAILABLE: i32 = 259;

#[cfg(all(test, not(talpf_loom), not(miri)))]
mod tests;
