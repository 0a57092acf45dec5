//! A software RDMA device with the objects and rules of InfiniBand verbs.
//!
//! A [`Device`] simulates one adapter. Every [`Context`] opened from clones of it can reach every
//! other: a [`ProtectionDomain`] registers memory, a [`QueuePair`] connects to another by number,
//! work requests are posted to it, and [`CompletionQueue`]s report their results.
//!
//! There is no device thread. The thread that posts a request carries it out: it makes the checks
//! of the peer, copies the bytes once, and leaves the completions. A request that cannot be carried
//! out yet (no receive posted, no response, a delayed message) stays in its queue pair; the peer
//! that posts the receive, or [`Context::advance`], resumes it.
//!
//! A device may be one of several, one in each process, that a [`Rail`] joins: see
//! [`Device::with_rail`]. Its queue pairs can then be connected to those of other processes too, by
//! [`QueuePair::connect_to`], and follow the same rules.
//!
//! A rail has messages, and writes and reads of registered memory, between processes. [`ShmRail`] is
//! that of one machine, [`Packets`] runs over any [`Wire`], such as TCP, and [`RoutedRail`] over both.
//! Processes find each other by a [`bootstrap`]. Queue pairs send their requests as messages,
//! and copy data at once where the rail maps the memory of both processes.
//!
//! Only the reliable connected transport exists, so a send queue never stops alone: the state that
//! verbs call "send queue error" does not occur. The crate never reads a clock, starts a thread or
//! prints.
//!
//! ```
//! use std::ptr::NonNull;
//! use ibverbs_sim::*;
//!
//! # fn main() -> Result<(), Error> {
//! let device = Device::new(DeviceConfig::default())?;
//! let (here, there) = (device.open(), device.open());
//! let mut inbox = [0u8; 64];
//! let domain = there.allocate_protection_domain();
//! let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
//! // SAFETY: `inbox` outlives `region` and is read only after the write has completed.
//! let region = unsafe { domain.register(NonNull::from(&mut inbox).cast(), 64, access)? };
//!
//! let cq = here.create_completion_queue(16, None)?;
//! let there_cq = there.create_completion_queue(16, None)?;
//! let a = here.allocate_protection_domain().create_queue_pair(&QueuePairInit::new(&cq, &cq))?;
//! let b = domain.create_queue_pair(&QueuePairInit::new(&there_cq, &there_cq))?;
//! a.connect(b.number(), &Connection::default())?;
//! b.connect(a.number(), &Connection::default())?;
//!
//! b.post_receive(&[ReceiveWorkRequest { wr_id: 7, scatter: &[] }])?;
//! a.post_send(&[SendWorkRequest {
//!     wr_id: 1,
//!     operation: Operation::WriteWithImmediate { remote: region.at(0), immediate: 42 },
//!     payload: Payload::Inline(b"bytes"),
//!     flags: SendFlags::SIGNALLED,
//! }])?;
//!
//! let mut completions = [WorkCompletion::default(); 4];
//! assert_eq!(there_cq.poll(&mut completions), 1);
//! assert_eq!(completions[0].immediate, Some(42));
//! drop(region);
//! assert_eq!(&inbox[..5], b"bytes");
//! # Ok(())
//! # }
//! ```

mod access;
mod async_event;
mod attributes;
pub mod bootstrap;
#[cfg(all(test, not(talpf_loom), not(miri)))]
mod c_headers;
mod callback;
mod checked;
mod completion;
mod completion_channel;
mod completion_queue;
mod completion_status;
mod context;
mod control_plane;
mod deferred;
mod device;
mod error;
mod gate;
mod key_table;
mod link;
mod memory_region;
mod model;
mod port;
mod process_limits;
mod protection_domain;
mod queue_pair;
mod queue_pair_list;
mod queue_pair_number;
mod rail;
mod random;
mod receive_queue;
mod ring;
mod send_queue;
mod shared_library;
mod shared_receive_queue;
mod slab;
mod timers;
mod wire;
mod word_update;
mod work_request;

pub use access::Access;
pub use async_event::AsyncEvent;
pub use attributes::{DeviceAttributes, PortAttributes, PortState};
pub use completion::{CompletionOpcode, WorkCompletion};
pub use completion_channel::CompletionChannel;
pub use completion_queue::CompletionQueue;
pub use completion_status::CompletionStatus;
pub use context::Context;
pub use device::{Device, DeviceConfig};
pub use error::{Error, PostError, Result};
pub use key_table::{LocalKey, RemoteKey};
pub use link::FaultPlan;
pub use memory_region::MemoryRegion;
pub use model::{
    Delivery, Entry as ProfileEntry, HeldMessage, LinkModel, LinkModelError, MessageId, Network,
};
pub use protection_domain::ProtectionDomain;
pub use queue_pair::{Connection, QueuePair, QueuePairAttributes, QueuePairInit, QueuePairState};
pub use queue_pair_number::QueuePairNumber;
pub use rail::{
    Armed, LossReason, OfiChoice, OfiEnd, OfiError, OfiProvider, OfiProviders, OfiRail, Packets,
    Posted, Rail, RailAddress, RailError, RailEvent, RailKey, RailLimits, RailMemory, RoutedRail,
    ShmConfig, ShmRail, ShmSegment,
};
pub use shared_receive_queue::{SharedReceiveQueue, SharedReceiveQueueInit};
pub use wire::{MAX_PACKET, SocketWire, TcpMeeting, Wire};
pub use word_update::WordUpdate;
pub use work_request::{
    Operation, Payload, ReceiveWorkRequest, RemoteAddress, ScatterGather, SendFlags,
    SendWorkRequest,
};
