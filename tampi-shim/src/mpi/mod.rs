//! The transport `mpi`: messages over any installed MPI, one rank a process.
//!
//! Operations own their buffers and complete tickets, so nothing of the `mpi` crate but its
//! foreign functions is used: its safe requests borrow their buffers inside a closure that cannot
//! await.
//!
//! What MPI grants decides who may call it. With [`Threads::Multiple`] a task starts its
//! operations itself, and whoever looks - the polling task, or a task that waits - tests all
//! requests at once. Else the thread that called [`run`] does all of it, and tasks leave it orders.
//!
//! ```text
//! task ── start ──► MPI_Isend, MPI_Irecv ── incomplete ──► inbox ──► slab ── MPI_Testsome ──┐
//!   ▲                     └ complete at once                                                │
//!   └────────────────────────────────────── ticket ◄────────────────────────────────────────┘
//! ```

mod alarm;
mod aside;
mod call;
mod communicator;
mod contexts;
mod datatype;
mod end;
mod engine;
mod home;
mod library;
mod owned;
mod period;
mod poller;
mod probers;
mod progress;
mod request;
mod run;
mod slab;
mod transport;
mod window;
mod wire;

use ::mpi::ffi;

pub use self::call::Refused;
pub(crate) use self::communicator::{Matched, RawCommunicator};
pub(crate) use self::datatype::Shape;
pub use self::library::{Library, Threads};
pub use self::period::PollingPeriod;
pub(crate) use self::request::{RawRequest, RawStatus};
pub use self::run::{Config, run};
pub(crate) use self::transport::MpiTransport;
pub use self::window::{Element, Update, Window};
pub use self::wire::MpiWire;
