//! Bootstraps: how the processes of a run find each other, before a rail joins them.
//!
//! A launcher gives each process a number. What the processes have to know of each other first - the
//! addresses at which they listen, and the machine that they are on - goes through a [`Bootstrap`]:
//! each puts values, all pass a fence, and each gets the values of the others. [`connect`] does so,
//! and makes the rail that joins the processes.
//!
//! - `error`: the reasons for which processes do not come together.
//! - `message`: the messages between a process and the server, and their conversion.
//! - `server`: the TCP server at which processes meet; `client`: the bootstrap of those processes.
//! - `fabric`: the choice of a rail between each two processes.
//! - `ofi`: the agreement on a provider of libfabric.
//! - `life`: the watch over processes that are stopped, or not reached.
//! - `pmi`, `pmix`: the bootstraps of processes that a launcher with PMI or PMIx has started; `environment`:
//!   the variables that it sets; `settings`: the comparison of those of all processes.
//! - `machine`: the machine of a process, and its address.
//!
//! Everything here waits, and runs before there are queue pairs. Nothing that a process or a stranger
//! sends is believed: lengths are bounded, and memory grows only with what has arrived.

mod client;
mod environment;
mod error;
mod fabric;
mod life;
mod machine;
mod message;
mod ofi;
mod pmi;
mod pmix;
mod server;
mod settings;

use std::{net::IpAddr, time::Duration};

pub use self::client::TcpBootstrap;
pub use self::error::BootstrapError;
pub use self::fabric::{Connected, Connections, Fabric, PEER_TIMEOUT, connect};
pub use self::ofi::{OfiPart, WithoutOfi};
pub use self::pmi::{PmiBootstrap, PmiLaunch};
pub use self::pmix::{PmixBootstrap, PmixLaunch};
pub use self::server::BootstrapServer;
pub use self::settings::RunSettings;
pub use crate::process_limits::with_process_limits;

/// A way for the processes of a run to exchange small values before they are connected.
pub trait Bootstrap {
    /// Returns the number of this process, from 0.
    fn process(&self) -> u32;

    /// Returns the number of processes.
    fn processes(&self) -> u32;

    /// Returns the address of this machine that processes on other machines reach.
    fn address(&self) -> IpAddr;

    /// Returns the time that the others have to pass a fence, or to connect.
    fn timeout(&self) -> Duration;

    /// Publishes a value of this process. The others get it once all have passed the next fence.
    ///
    /// **Errors**: key or value are too long; the process has put the key before.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootstrapError>;

    /// Waits until all processes have called this.
    ///
    /// **Errors**: a process has not come in time, or is not one of this run.
    fn fence(&mut self) -> Result<(), BootstrapError>;

    /// Returns a value that a process has put before the last fence.
    ///
    /// **Errors**: there is no such value.
    fn get(&mut self, process: u32, key: &str) -> Result<Vec<u8>, BootstrapError>;
}
