//! The server at which the processes of a run meet, over TCP.
//!
//! A single thread serves all: it reads one connection after another, and waits for none alone, so that
//! strangers, and processes that are stopped, delay nobody. The first mistake of a process ends the
//! start for all of them, with the same reason.

use std::{
    io::{ErrorKind, Write},
    net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs},
    time::Duration,
};

use super::{
    BootstrapError,
    message::{self, Handshake, Incoming, Kind, VERSION},
};
use crate::wire::ConnectAttempts;

/// Wait for a process to take what it is sent.
const GRACE: Duration = Duration::from_secs(2);
/// Most connections at a time, those of strangers included.
const MAX_CONNECTIONS: usize = 4096;

/// Server of a [`TcpBootstrap`](super::TcpBootstrap).
#[derive(Debug)]
pub struct BootstrapServer {
    listener: TcpListener,
    processes: u32,
    secret: Vec<u8>,
}

/// A connection.
struct Client {
    socket: TcpStream,
    address: SocketAddr,
    incoming: Incoming,
    /// Handshake of the process, once it has come.
    handshake: Option<Handshake>,
    /// Values that the process has brought to the fence at which it waits.
    values: Option<Vec<u8>>,
    is_closed: bool,
}

impl BootstrapServer {
    /// Listens at an address, for `processes` processes that know the secret.
    ///
    /// **Errors**: [`BootstrapError::Listen`].
    pub fn listen(
        address: impl ToSocketAddrs + ToString,
        processes: u32,
        secret: &[u8],
    ) -> Result<Self, BootstrapError> {
        let failed = |source| BootstrapError::Listen { address: address.to_string(), source };
        let listener = TcpListener::bind(&address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener, processes, secret: secret.to_vec() })
    }

    /// Returns the port of the server.
    ///
    /// **Errors**: [`BootstrapError::Listen`].
    pub fn port(&self) -> Result<u16, BootstrapError> {
        let address = self.listener.local_addr();
        let failed = |source| BootstrapError::Listen { address: "its address".into(), source };
        Ok(address.map_err(failed)?.port())
    }

    /// Serves the processes until all of them have left. They have `timeout` from now on.
    ///
    /// **Errors**: a process is missing, has come twice, or is not one of the run; the processes that
    /// have come know the reason.
    pub fn run(self, timeout: Duration) -> Result<(), BootstrapError> {
        let mut clients = Vec::new();
        let outcome = self.serve(&mut clients, ConnectAttempts::new(timeout));
        if let Err(error) = &outcome {
            // One that has left does not come to hear it.
            let left = usize::from(matches!(error, BootstrapError::Left { .. }));
            self.refuse(&mut clients, self.processes as usize - left, &error.to_string());
        }
        outcome
    }

    /// Gives the reason of an error to `all` processes, to those that come a little later as well.
    /// Returns once they have read it: a socket that is closed before what it has received was read
    /// takes back what it has sent.
    fn refuse(&self, clients: &mut Vec<Client>, all: usize, reason: &str) {
        let refusal = message::frame(Kind::Refused, reason.as_bytes());
        let send = |client: &mut Client| client.is_closed |= !client.send(&refusal);
        clients.iter_mut().filter(|client| client.handshake.is_some()).for_each(send);
        let mut refused = clients.iter().filter(|client| client.handshake.is_some()).count();
        let mut attempts = ConnectAttempts::new(GRACE);
        while refused < all || !clients.is_empty() {
            self.accept(clients);
            for client in clients.iter_mut() {
                while let Some((kind, _)) = client.receive() {
                    if kind == Kind::Handshake {
                        refused += 1;
                        send(client);
                    }
                }
            }
            clients.retain(|client| !client.is_closed);
            if !attempts.wait() {
                return;
            }
        }
    }

    fn serve(
        &self,
        clients: &mut Vec<Client>,
        mut attempts: ConnectAttempts,
    ) -> Result<(), BootstrapError> {
        let mut has_met = false;
        let mut gone = None;
        loop {
            self.accept(clients);
            for at in 0..clients.len() {
                while let Some(message) = clients[at].receive() {
                    self.take(clients, at, message)?;
                }
            }
            gone = gone.or_else(|| left(clients));
            clients.retain(|client| !client.is_closed);
            // Nobody passes a fence that a process will not come to.
            let waits = clients.iter().any(|client| client.values.is_some());
            if let Some(process) = gone.filter(|_| !has_met || waits) {
                return Err(BootstrapError::Left { process });
            }
            let waiting = clients.iter().filter(|client| client.values.is_some()).count();
            if waiting == self.processes as usize {
                has_met = true;
                pass(clients);
            } else if has_met && clients.iter().all(|client| client.handshake.is_none()) {
                return Ok(());
            } else if !attempts.wait() {
                return Err(self.missing(clients, has_met));
            }
        }
    }

    fn accept(&self, clients: &mut Vec<Client>) {
        while clients.len() < MAX_CONNECTIONS {
            // Whatever the reason, the next pass tries again.
            let Ok((socket, address)) = self.listener.accept() else { break };
            if socket.set_nonblocking(true).is_ok() && socket.set_nodelay(true).is_ok() {
                clients.push(Client {
                    socket,
                    address,
                    incoming: Incoming::default(),
                    handshake: None,
                    values: None,
                    is_closed: false,
                });
            }
        }
    }

    /// Takes a message of a connection.
    fn take(
        &self,
        clients: &mut [Client],
        at: usize,
        (kind, content): (Kind, Vec<u8>),
    ) -> Result<(), BootstrapError> {
        let client = &clients[at];
        match (kind, &client.handshake) {
            (Kind::Handshake, None) => {
                let Some(handshake) = Handshake::decode(&content) else {
                    clients[at].is_closed = true;
                    return Ok(());
                };
                let outcome = self.compare(clients, client.address, &handshake);
                clients[at].handshake = Some(handshake);
                outcome?;
            }
            (Kind::Fence, Some(_)) if client.values.is_none() => {
                clients[at].values = Some(content);
            }
            _ => clients[at].is_closed = true,
        }
        Ok(())
    }

    /// Compares the handshake of a process with those that came before.
    fn compare(
        &self,
        clients: &[Client],
        address: SocketAddr,
        handshake: &Handshake,
    ) -> Result<(), BootstrapError> {
        let &Handshake { version, process, processes, .. } = handshake;
        let other = |difference| Err(BootstrapError::Other { process, address, difference });
        if version != VERSION {
            return other(format!("has version {version} of the protocol, not {VERSION}"));
        }
        if handshake.secret != self.secret {
            return other("has another secret".into());
        }
        if processes != self.processes {
            return other(format!("expects {processes} processes, not {}", self.processes));
        }
        if process >= processes {
            return Err(BootstrapError::Number { process, processes });
        }
        for before in clients {
            let Some(first) = &before.handshake else { continue };
            if first.process == process {
                let (first, second) = (before.address, address);
                return Err(BootstrapError::Twice { process, first, second });
            }
            if let Some(difference) = difference(handshake, first) {
                return other(difference);
            }
        }
        Ok(())
    }

    /// Returns the error that names the processes that have not come, to the server or to a fence.
    fn missing(&self, clients: &[Client], has_met: bool) -> BootstrapError {
        let is_there = |process: &u32| {
            clients.iter().any(|client| {
                client.process() == Some(*process) && (!has_met || client.values.is_some())
            })
        };
        let mut missing: Vec<u32> =
            (0..self.processes).filter(|process| !is_there(process)).collect();
        if missing.is_empty() {
            // All have come, and some not to the fence.
            let waits = |client: &&Client| client.values.is_none();
            missing = clients.iter().filter(waits).filter_map(Client::process).collect();
        }
        BootstrapError::Missing { missing, processes: self.processes }
    }
}

/// Returns the first setting in which a process differs from another one.
fn difference(of: &Handshake, from: &Handshake) -> Option<String> {
    let value = |handshake: &Handshake, name: &str| {
        let mut settings = handshake.settings.iter();
        settings
            .find(|setting| setting.0 == name)
            .map_or("nothing", |setting| &setting.1)
            .to_owned()
    };
    let names = of.settings.iter().chain(&from.settings).map(|setting| &setting.0);
    let mut all = names.map(|name| (name, value(of, name), value(from, name)));
    let (name, here, there) = all.find(|(_, here, there)| here != there)?;
    Some(format!("has {name} {here}, not {there} as process {}", from.process))
}

/// Returns a process that has closed its connection.
fn left(clients: &[Client]) -> Option<u32> {
    clients.iter().filter(|client| client.is_closed).find_map(Client::process)
}

/// Lets all processes pass the fence, each with the values of all.
fn pass(clients: &mut [Client]) {
    let mut all = Vec::new();
    for client in clients.iter_mut() {
        if let (Some(process), Some(values)) = (client.process(), client.values.take()) {
            all.extend(process.to_le_bytes());
            message::push(&mut all, &values);
        }
    }
    let all = message::frame(Kind::All, &all);
    for client in clients.iter_mut().filter(|client| client.handshake.is_some()) {
        client.is_closed |= !client.send(&all);
    }
}

impl Client {
    fn process(&self) -> Option<u32> {
        self.handshake.as_ref().map(|handshake| handshake.process)
    }

    /// Returns the next message, if it has come as a whole.
    fn receive(&mut self) -> Option<(Kind, Vec<u8>)> {
        loop {
            match self.incoming.take(message::MAX_REQUEST) {
                Ok(Some(message)) if !self.is_closed => return Some(message),
                Ok(None) if !self.is_closed => {}
                _ => {
                    self.is_closed = true;
                    return None;
                }
            }
            match self.incoming.read(&self.socket) {
                Ok(true) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Ok(false) | Err(_) => self.is_closed = true,
            }
        }
    }

    /// Sends bytes that a process waits for. Returns `false` if the connection has broken.
    fn send(&self, bytes: &[u8]) -> bool {
        // A process that waits reads; if it is stopped, the buffer of the socket has to do.
        self.socket.set_nonblocking(false).is_ok()
            && self.socket.set_write_timeout(Some(GRACE)).is_ok()
            && (&self.socket).write_all(bytes).is_ok()
            && self.socket.set_nonblocking(true).is_ok()
    }
}
