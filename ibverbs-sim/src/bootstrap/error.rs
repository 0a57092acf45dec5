//! Errors of bootstraps.

use std::{io, net::SocketAddr};

use super::Fabric;
use crate::{OfiError, process_limits::with_process_limits};

/// Reason for which the processes of a run do not come together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// A server cannot listen at an address, which may be in use.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// Error of the operating system.
        source: io::Error,
    },

    /// The server is not reached in time, or its name is unknown.
    #[error("cannot reach the server at {server}: {source}")]
    NoServer {
        /// Address of the server.
        server: String,
        /// Error of the operating system.
        source: io::Error,
    },

    /// The connection to the server has broken.
    #[error("the server at {server} has ended the connection: {source}")]
    ServerGone {
        /// Address of the server.
        server: SocketAddr,
        /// Error of the operating system.
        source: io::Error,
    },

    /// The server has ended the start of all processes, for a reason that it names.
    #[error("{reason}")]
    Refused {
        /// The reason.
        reason: String,
    },

    /// Bytes that are no message of the protocol.
    #[error("the server at {server} has sent bytes that are no message of this version")]
    Malformed {
        /// Address of the server.
        server: SocketAddr,
    },

    /// Two processes have the same number.
    #[error("process {process} has come twice, from {first} and from {second}")]
    Twice {
        /// The number.
        process: u32,
        /// Address of the process that came first.
        first: SocketAddr,
        /// Address of the other one.
        second: SocketAddr,
    },

    /// Processes have not come in time.
    #[error("{} of {processes} {} come in time", named(missing), has(missing))]
    Missing {
        /// Numbers of the processes that are missing.
        missing: Vec<u32>,
        /// Number of processes.
        processes: u32,
    },

    /// A process has a number that none of the run has.
    #[error("process {process} of {processes}: numbers are from 0 to {}", processes - 1)]
    Number {
        /// The number.
        process: u32,
        /// Number of processes.
        processes: u32,
    },

    /// A process has another version, number of processes, secret or setting.
    #[error("process {process} at {address} {difference}")]
    Other {
        /// Number of the process.
        process: u32,
        /// Address of the process.
        address: SocketAddr,
        /// The difference, as the rest of a sentence.
        difference: String,
    },

    /// A process has left before the others had met, or while they wait for it at a fence.
    #[error("process {process} has left before all had come")]
    Left {
        /// Number of the process.
        process: u32,
    },

    /// The environment of a process that a launcher has started is incomplete, or contradicts itself.
    #[error("{text}")]
    Environment {
        /// The variables and their values.
        text: String,
    },

    /// A process and the launcher that has started it do not understand each other.
    #[error("process {process} has no answer of its launcher, by PMI: {source}")]
    Pmi {
        /// Number of the process.
        process: u32,
        /// Error of the operating system, or the answer.
        source: io::Error,
    },

    /// A call of PMIx has failed in a process that has reached its launcher before.
    #[error("process {process} has no answer of its launcher, by {reason}")]
    Pmix {
        /// Number of the process.
        process: u32,
        /// Name of the call, and the text of the library.
        reason: String,
    },

    /// Processes have not come to a fence in time.
    #[error("not all of the {processes} processes have come in time")]
    Fence {
        /// Number of processes.
        processes: u32,
    },

    /// A key or a value is too long, or was put before.
    #[error(
        "cannot put {key:?}, with {bytes} bytes: it was put before, or all values together are \
         longer than {limit}"
    )]
    Put {
        /// The key.
        key: String,
        /// Bytes of the value.
        bytes: usize,
        /// Most bytes of all keys and values between two fences.
        limit: usize,
    },

    /// A process has put no such value, or one that makes no sense.
    #[error("process {process} has put no {key:?} that makes sense")]
    NotPut {
        /// Number of the process.
        process: u32,
        /// The key.
        key: String,
    },

    /// A process is to be connected in another way than this one.
    #[error("process {process} is to be connected by {there}, process {here} by {own}")]
    OtherFabric {
        /// Number of this process.
        here: u32,
        /// Fabric of this process.
        own: Fabric,
        /// Number of the other process.
        process: u32,
        /// Fabric of the other process.
        there: Fabric,
    },

    /// Processes on several machines are to share memory.
    #[error(
        "process {process} is on another machine than process {here}, so memory cannot be shared"
    )]
    OtherMachine {
        /// Number of this process.
        here: u32,
        /// Number of the process on another machine.
        process: u32,
    },

    /// Libfabric cannot be used by this process as it should.
    #[error("process {process}: {source}")]
    Ofi {
        /// Number of this process.
        process: u32,
        /// The reason.
        source: OfiError,
    },

    /// Libfabric cannot be used by another process as it should.
    #[error("process {process}: {reason}")]
    NoOfi {
        /// Number of the other process.
        process: u32,
        /// The reason that the other process has given.
        reason: String,
    },

    /// A process uses another provider of libfabric than this one.
    #[error("process {process} uses the provider {there} of libfabric, process {here} uses {own}")]
    OtherProvider {
        /// Number of this process.
        here: u32,
        /// Provider of this process.
        own: String,
        /// Number of the other process.
        process: u32,
        /// Provider of the other process.
        there: String,
    },

    /// Processes have found each other, and cannot connect.
    #[error(
        "process {process} of {processes} cannot connect to the others by {fabric}: {}",
        with_process_limits(.source, .source.raw_os_error())
    )]
    Connect {
        /// Number of this process.
        process: u32,
        /// Number of processes.
        processes: u32,
        /// The kind of connection.
        fabric: Fabric,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Most processes that a message names.
const NAMED: usize = 8;

fn named(processes: &[u32]) -> String {
    let numbers: Vec<_> = processes.iter().take(NAMED).map(u32::to_string).collect();
    let more = processes.len().saturating_sub(NAMED);
    let noun = if processes.len() == 1 { "process" } else { "processes" };
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{noun} {}{rest}", numbers.join(", "))
}

fn has(processes: &[u32]) -> &'static str {
    if processes.len() == 1 { "has not" } else { "have not" }
}
