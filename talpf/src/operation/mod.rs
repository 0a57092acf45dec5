//! Operations: put, get, fetch-and-add, compare-and-swap.
//!
//! An operation takes the guard of its local region and holds it until the region may be reused
//! (*local* completion). Its life:
//!
//! ```text
//! issued ─► posted ─► carried out by the device ─► guard returned
//!    │        ▲
//!    ├─► parked at the target, until its window opens
//!    └─► in the retry queue, for want of credit or of room in the send queue
//! ```
//!
//! Short puts are copied when they are posted, parked or batched to be posted together (see
//! `batch`), so their guard returns at once. So does that of any other operation on a rank of this
//! process which is one request, once its issuer has carried it out (see `single_request`; of few
//! bytes, `short_get`). All others are cut into requests, each of consecutive bytes at the target
//! (see `payloads`); the last one carries the immediate, and its completion returns the guard.
//! A get or an atomic ends with an empty write that carries the immediate.

mod batch;
mod batches;
mod chain;
mod future;
mod guards;
mod issued;
mod notified_put;
mod occupancy;
mod open_round;
mod parked_puts;
mod patience;
mod payloads;
mod pending;
mod registration;
mod retry;
mod retry_queue;
mod short_get;
mod short_put;
mod single_request;
mod transfer;

pub use self::future::Operation;
pub use self::guards::{Destination, Source};
pub use self::open_round::OpenRound;

pub(crate) use self::batches::Batches;
pub(crate) use self::chain::joined;
pub(crate) use self::issued::Issued;
pub(crate) use self::notified_put::{notify, put_copy_notified, put_notified, refused};
pub(crate) use self::open_round::Spawned;
pub(crate) use self::pending::{Done, Pending};
pub(crate) use self::retry_queue::RetryQueue;
pub(crate) use self::transfer::{Route, Transfer, Verb};
