//! The bootstrap of processes that meet at a server over TCP.

use std::{
    collections::HashMap,
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs},
    time::Duration,
};

use super::{
    Bootstrap, BootstrapError,
    message::{self, Fields, Handshake, Incoming, Kind, VERSION},
};
use crate::wire::{ConnectAttempts, RETRY_INTERVAL};

/// Wait beyond the timeout for the server to say who has not come.
const GRACE: Duration = Duration::from_secs(2);

/// Bootstrap of a process that meets the others at a [`BootstrapServer`](super::BootstrapServer).
///
/// ```
/// use std::{thread, time::Duration};
/// use ibverbs_sim::bootstrap::{Bootstrap, BootstrapError, BootstrapServer, TcpBootstrap};
///
/// let (secret, timeout) = (b"of this run", Duration::from_secs(10));
/// let server = BootstrapServer::listen("127.0.0.1:0", 2, secret)?;
/// let address = format!("127.0.0.1:{}", server.port()?);
/// let server = thread::spawn(move || server.run(timeout));
/// // In the process with this number, of two; here threads stand for them.
/// let process = move |number: u32| {
///     let mut all = TcpBootstrap::join(&address, number, 2, secret, &[], timeout)?;
///     all.put("favourite", &[number as u8 + 5])?;
///     all.fence()?;
///     all.get(1 - number, "favourite")
/// };
/// let other = thread::spawn({ let process = process.clone(); move || process(1) });
/// assert_eq!(process(0)?, [6]);
/// assert_eq!(other.join().expect("no panic")?, [5]);
/// server.join().expect("no panic")?;
/// # Ok::<(), BootstrapError>(())
/// ```
#[derive(Debug)]
pub struct TcpBootstrap {
    process: u32,
    processes: u32,
    socket: TcpStream,
    server: SocketAddr,
    timeout: Duration,
    /// Values that were put since the last fence, as they travel.
    put: Vec<u8>,
    /// Values of all processes.
    values: HashMap<(u32, String), Vec<u8>>,
}

impl TcpBootstrap {
    /// Connects to a server, which may start later than this process. All processes must have the
    /// same secret and settings.
    ///
    /// **Errors**: [`BootstrapError::Number`]; [`BootstrapError::NoServer`] after the timeout.
    /// Others are errors of the first [`fence`](Bootstrap::fence).
    pub fn join(
        server: &str,
        process: u32,
        processes: u32,
        secret: &[u8],
        settings: &[(&str, &str)],
        timeout: Duration,
    ) -> Result<Self, BootstrapError> {
        if process >= processes {
            return Err(BootstrapError::Number { process, processes });
        }
        let failed = |source| BootstrapError::NoServer { server: server.to_owned(), source };
        let addresses: Vec<_> = server.to_socket_addrs().map_err(failed)?.collect();
        let wait = timeout.max(RETRY_INTERVAL);
        let connect = || {
            let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
            for address in &addresses {
                match TcpStream::connect_timeout(address, wait) {
                    Ok(socket) => return Ok(socket),
                    Err(error) => last = error,
                }
            }
            Err(last)
        };
        let socket = ConnectAttempts::new(timeout).until(connect).map_err(failed)?;
        let address = socket.peer_addr().map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        socket.set_read_timeout(Some(wait.saturating_add(GRACE))).map_err(failed)?;
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let handshake = Handshake {
            version: VERSION,
            process,
            processes,
            secret: secret.to_vec(),
            settings: settings.iter().map(own).collect(),
        };
        message::send(&socket, Kind::Handshake, &handshake.encode()).map_err(failed)?;
        let (put, values) = (Vec::new(), HashMap::new());
        Ok(Self { process, processes, socket, server: address, timeout, put, values })
    }

    /// Receives the values of all processes, or the reason for which there are none.
    fn receive(&self) -> Result<Vec<u8>, BootstrapError> {
        let server = self.server;
        let gone = |source| BootstrapError::ServerGone { server, source };
        let malformed = BootstrapError::Malformed { server };
        let mut incoming = Incoming::default();
        loop {
            match incoming.take(message::MAX_RESPONSE) {
                Ok(Some((Kind::All, content))) => return Ok(content),
                Ok(Some((Kind::Refused, reason))) => {
                    let reason = String::from_utf8_lossy(&reason).into_owned();
                    return Err(BootstrapError::Refused { reason });
                }
                Ok(None) => {}
                _ => return Err(malformed),
            }
            match incoming.read(&self.socket) {
                Ok(true) => {}
                Ok(false) => return Err(gone(ErrorKind::UnexpectedEof.into())),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(gone(error)),
            }
        }
    }

    /// Takes in the values of all processes.
    fn take_values(&mut self, content: &[u8]) -> Option<()> {
        let mut processes = Fields(content);
        while !processes.is_empty() {
            let process = processes.number()?;
            let mut values = Fields(processes.bytes()?);
            while !values.is_empty() {
                let key = (process, values.text()?);
                self.values.insert(key, values.bytes()?.to_vec());
            }
        }
        Some(())
    }
}

impl Bootstrap for TcpBootstrap {
    fn process(&self) -> u32 {
        self.process
    }

    fn processes(&self) -> u32 {
        self.processes
    }

    fn address(&self) -> IpAddr {
        // The interface by which the server is reached, from which others reach this machine.
        self.socket.local_addr().map_or(IpAddr::from([0, 0, 0, 0]), |address| address.ip())
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        let entry = (self.process, key.to_owned());
        let length = self.put.len() + 2 * size_of::<u32>() + key.len() + value.len();
        if self.values.contains_key(&entry) || length > message::MAX_REQUEST {
            let (key, bytes, limit) = (entry.1, value.len(), message::MAX_REQUEST);
            return Err(BootstrapError::Put { key, bytes, limit });
        }
        message::push(&mut self.put, key.as_bytes());
        message::push(&mut self.put, value);
        self.values.insert(entry, value.to_vec());
        Ok(())
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        // If this fails, the server may have said why.
        let sent = message::send(&self.socket, Kind::Fence, &std::mem::take(&mut self.put));
        let server = self.server;
        let content = self.receive().map_err(|error| match (error, sent) {
            (BootstrapError::ServerGone { .. }, Err(source)) => {
                BootstrapError::ServerGone { server, source }
            }
            (error, _) => error,
        })?;
        self.take_values(&content).ok_or(BootstrapError::Malformed { server })
    }

    fn get(&mut self, process: u32, key: &str) -> Result<Vec<u8>, BootstrapError> {
        let key = (process, key.to_owned());
        let value = self.values.get(&key).cloned();
        value.ok_or(BootstrapError::NotPut { process, key: key.1 })
    }
}
