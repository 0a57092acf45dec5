//! The rail on libfabric, which has the networks of machines.
//!
//! The library is opened at run time: nothing of it is needed to build this crate, and a program runs
//! without it as long as nobody asks for this rail.
//!
//! - A message, and every other frame, is a message of libfabric with an envelope before it, in memory
//!   of this crate on both sides.
//! - Short writes and reads are carried out by frames, as in the rail of packets.
//! - A long write is a rendezvous: this process *announces* its bytes, which the peer may read until it has answered,
//!   and the owner of the target *fetches* them, by RMA, to where they belong. The owner checks the
//!   claim before, and cancels the fetch as it closes the memory: no peer ever writes by itself, so a
//!   claim that is refused, or a peer that ends or stops, breaks nothing.
//! - A long read asks the owner of the bytes, which checks the claim and announces them in the same way. Whoever
//!   has asked fetches them.
//! - Either side has an endpoint of its own for this, the *reader* and the *responder*. Whoever takes memory back
//!   before a fetch has ended closes its own one, as libfabric has no other way to end an operation for sure; what
//!   else was under way by it begins again, so it is for errors.
//! - RMA is nothing but these fetches. Neither the order of writes, nor that of the bytes of one, nor a notice of the
//!   provider is relied on.
//! - A connection over sockets to each peer, the *control connection*, carries nothing. Its end shows
//!   that the peer has ended, which libfabric does not say while nothing is under way.
//!
//! Modules: `abi`, `library`, `object`, `queue`, `endpoint`, `apart` are the interface of the library, each safer than the
//! one before; `choice` and `providers` choose the provider; `packet`, `memory`, `outgoing`, `incoming`
//! are what is sent and received; `transfers`, `announcements`, `responder` are the side of long writes and reads whose
//! bytes are read, `fetches`, `pieces`, `reads`, `reader` the one that reads;
//! `rail` is the rail, `progress` what it does with completions, `join` makes one, and `strict` is for tests.
//!
//! **Threads**: any thread sends. One at a time takes completions, under the lock of the inbox, and makes
//! events of them; one at a time passes these on. Providers are driven by those who poll.

mod abi;
mod announcements;
mod apart;
mod choice;
mod endpoint;
mod error;
mod fetches;
mod incoming;
mod join;
mod library;
mod memory;
mod object;
mod outgoing;
mod packet;
mod pieces;
mod progress;
mod providers;
mod queue;
mod rail;
mod reader;
mod reads;
mod responder;
mod strict;
mod transfers;

pub use self::choice::OfiChoice;
pub use self::error::OfiError;
pub use self::join::OfiEnd;
pub use self::providers::{OfiProvider, OfiProviders};
pub use self::rail::OfiRail;

/// Most bytes of a message.
const EAGER_BYTES: usize = 64 << 10;

/// Contexts of buffers, and then of slots.
const RECEIVE_CONTEXTS: usize = 0;
const SEND_CONTEXTS: usize = RECEIVE_CONTEXTS + incoming::BUFFERS;
const ALL_CONTEXTS: usize = SEND_CONTEXTS + outgoing::SLOTS;
