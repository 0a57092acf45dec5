//! Processes that find each other, and reasons for which they do not. Here they are threads.

mod connect;
mod pmi;
mod pmi_server;
mod pmix;
mod slurm;
mod slurm_server;
mod strangers;
mod values;

use std::{thread, time::Duration};

use ibverbs_sim::bootstrap::{BootstrapError, BootstrapServer, TcpBootstrap};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const SHORT: Duration = Duration::from_millis(50);
pub(crate) const SECRET: &[u8] = b"of this run";

/// A server in a thread.
pub(crate) struct Server {
    pub(crate) address: String,
    thread: thread::JoinHandle<Result<(), BootstrapError>>,
}

impl Server {
    pub(crate) fn start(processes: u32, timeout: Duration) -> Self {
        let server = BootstrapServer::listen("127.0.0.1:0", processes, SECRET).unwrap();
        let address = format!("127.0.0.1:{}", server.port().unwrap());
        Self { address, thread: thread::spawn(move || server.run(timeout)) }
    }

    pub(crate) fn join(&self, process: u32, processes: u32) -> TcpBootstrap {
        TcpBootstrap::join(&self.address, process, processes, SECRET, &[], TIMEOUT).unwrap()
    }

    /// Waits until the server has ended, and returns its error.
    pub(crate) fn error(self) -> Option<String> {
        self.thread.join().unwrap().err().map(|error| error.to_string())
    }
}

/// Calls `process` in threads, by number, and returns the results.
pub(crate) fn each<R: Send>(processes: u32, process: impl Fn(u32) -> R + Sync) -> Vec<R> {
    let process = &process;
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..processes).map(|number| scope.spawn(move || process(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
