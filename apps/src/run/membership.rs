//! Membership of a process in a run, and how it finds the others.

use std::thread;
use std::time::Duration;

use ibverbs_sim::OfiChoice;
use ibverbs_sim::bootstrap::{
    Bootstrap, BootstrapError, BootstrapServer, Connected, Fabric, TcpBootstrap, connect,
};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Membership of a process in a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Membership {
    /// Number of the process, from 0.
    pub process: u32,
    /// Number of processes.
    pub processes: u32,
    /// Address of the server at which the processes meet, as `HOST:PORT`.
    pub server: String,
    /// Text that the processes of a run, and nobody else, know.
    pub secret: String,
    /// Time in which all processes must have met.
    pub timeout: Duration,
}

/// Links between the processes of a run.
#[derive(Clone, Debug)]
pub struct Links {
    /// Connections between processes.
    pub fabric: Fabric,
    /// Choice of the provider of libfabric, if that connects them.
    pub choice: OfiChoice,
    /// Time without a sign of life after which a process is given up.
    pub peer_timeout: Duration,
}

impl Links {
    /// Connects this process to the others that a bootstrap leads to.
    pub(super) fn connect(
        &self,
        bootstrap: &mut dyn Bootstrap,
    ) -> Result<Connected, BootstrapError> {
        connect(bootstrap, self.fabric, &self.choice, self.peer_timeout)
    }
}

impl Membership {
    /// Time in which all processes must have met, unless another is given.
    pub const TIMEOUT: Duration = Duration::from_secs(20);

    /// Connects this process to the others, at a server that somebody else runs. All must have the
    /// same settings.
    ///
    /// **Errors**: [`Error::Meet`].
    pub(super) fn connect(
        &self,
        links: &Links,
        settings: &[(&str, &str)],
    ) -> Result<Connected, Error> {
        let Self { process, processes, ref server, ref secret, timeout } = *self;
        let secret = secret.as_bytes();
        let connected = TcpBootstrap::join(server, process, processes, secret, settings, timeout)
            .and_then(|mut bootstrap| links.connect(&mut bootstrap));
        connected.map_err(Error::Meet)
    }

    /// Connects this process to the others, at a server that process 0 runs.
    ///
    /// **Errors**: [`Error::Meet`].
    pub(super) fn connect_without_launcher(
        &self,
        links: &Links,
        settings: &[(&str, &str)],
    ) -> Result<Connected, Error> {
        if self.process > 0 {
            return self.connect(links, settings);
        }
        let server = BootstrapServer::listen(&*self.server, self.processes, self.secret.as_bytes());
        let server = server.map_err(Error::Meet)?;
        let timeout = self.timeout;
        thread::scope(|scope| {
            // The others have to learn why this process ends, if it does.
            scope.spawn(move || server.run(timeout));
            self.connect(links, settings)
        })
    }
}
