//! Transport over any installed MPI, with one rank in each process.
//!
//! Operations own their buffers and complete tickets, so only the foreign functions of the `mpi`
//! crate are used: its safe requests borrow their buffers inside a closure that cannot await.
//!
//! MPI must provide `MPI_THREAD_MULTIPLE`: a task starts its operations itself, on the worker that
//! runs it, and the polling task and tasks that wait test all requests at once.
//!
//! ```text
//! task ── start ──► MPI_Isend, MPI_Irecv ── incomplete ──► inbox ──► slab ── MPI_Testsome ──┐
//!   ▲                     └ complete at once                                                │
//!   └────────────────────────────────────── ticket ◄────────────────────────────────────────┘
//! ```

mod blocking_calls;
mod call;
mod clocks;
mod communicator;
mod contexts;
mod datatype;
mod engine;
mod failure_broadcast;
mod internal_buffers;
mod library;
mod period;
mod poller;
mod probers;
mod progress;
mod request;
mod run;
mod shutdown;
mod slab;
mod transport;
mod window;
mod wire;

use ::mpi::ffi;

pub use self::call::Refused;
pub(crate) use self::communicator::{Matched, RawCommunicator};
pub(crate) use self::datatype::Shape;
pub use self::library::Library;
pub use self::period::PollingPeriod;
pub(crate) use self::request::{RawRequest, RawStatus};
pub use self::run::{Config, run};
pub use self::window::{Element, Update, Window};
pub use self::wire::MpiWire;
