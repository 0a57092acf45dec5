//! Meeting of the processes of a run over TCP, after which a [`SocketWire`] joins them.
//!
//! Every process listens, and connects to those with lower numbers. Both ends of a connection send a
//! handshake of [`HANDSHAKE`] bytes: the protocol, the secret of the run, the number of the process
//! and that of all. A connection that does not begin with protocol and secret is of a stranger, and
//! closed; strangers delay nobody, since no connection is waited for alone.

use std::{
    io::{self, ErrorKind, Read, Write as _},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use super::{ConnectAttempts, SocketWire};

/// First bytes of a handshake: the name of the protocol and its version.
const MAGIC: [u8; 8] = *b"verbtcp\x01";
/// Bytes of a handshake.
const HANDSHAKE: usize = MAGIC.len() + size_of::<u128>() + 2 * size_of::<u32>();
/// Most connections of strangers, or of processes whose handshake has not come, at a time.
const MAX_PENDING: usize = 1024;

/// A process that listens for the other processes of a run.
#[derive(Debug)]
pub struct TcpMeeting {
    listener: TcpListener,
}

/// Identity of a process in a run.
#[derive(Clone, Copy, Debug)]
struct Identity {
    process: u32,
    processes: u32,
    secret: u128,
}

impl TcpMeeting {
    /// Listens at an address of this machine, on a free port.
    ///
    /// **Errors**: the machine has no such address, or no free port.
    pub fn listen(address: IpAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((address, 0))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener })
    }

    /// Returns the address that the others connect to.
    ///
    /// **Errors**: those of the operating system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Connects to the other processes of a run, all of which are listening by now. `addresses` has
    /// theirs, by process: `None` for this one, and for those that the wire does not lead to, which
    /// is mutual. `secret` is the same in all processes, and known to nobody else.
    ///
    /// A connection whose other machine does not answer stays: [`connect`](crate::bootstrap::connect)
    /// watches the life of processes.
    ///
    /// **Errors**: a process has not connected in time; it expects another number of processes; two
    /// have the same number.
    pub fn join(
        self,
        process: u32,
        addresses: &[Option<SocketAddr>],
        secret: u128,
        timeout: Duration,
    ) -> io::Result<SocketWire> {
        let here = Identity { process, processes: addresses.len() as u32, secret };
        let mut wire = SocketWire::alone(process, here.processes)?;
        let mut missing = vec![false; addresses.len()];
        let mut pending = Vec::new();
        for (peer, address) in (0..).zip(addresses) {
            let Some(address) = address.filter(|_| peer != process) else { continue };
            missing[peer as usize] = true;
            if peer < process {
                let socket =
                    TcpStream::connect_timeout(&address, timeout.max(super::RETRY_INTERVAL))
                        .map_err(|error| {
                            context(&error, &format!("process {peer} at {address}"))
                        })?;
                pending.push(Pending::new(socket, Some(peer), here)?);
            }
        }
        let mut attempts = ConnectAttempts::new(timeout);
        while missing.contains(&true) {
            self.accept(&mut pending, here)?;
            let mut has_progressed = false;
            let mut still = Vec::new();
            for mut connection in pending {
                match connection.receive(here)? {
                    Received::Nothing => still.push(connection),
                    Received::Stranger => has_progressed = true,
                    Received::Peer(peer) => {
                        let expected = missing.get_mut(peer as usize);
                        if !expected.is_some_and(std::mem::take) {
                            return Err(invalid(format!("process {peer} has connected twice")));
                        }
                        wire.add(peer, connection.socket)?;
                        has_progressed = true;
                    }
                }
            }
            pending = still;
            if !has_progressed && !attempts.wait() {
                let missing = (0..missing.len()).filter(|process| missing[*process]);
                let missing: Vec<String> = missing.map(|process| process.to_string()).collect();
                let text = format!("no connection with process {}", missing.join(", "));
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
        }
        Ok(wire)
    }

    fn accept(&self, pending: &mut Vec<Pending>, here: Identity) -> io::Result<()> {
        while pending.len() < MAX_PENDING {
            match self.listener.accept() {
                Ok((socket, _)) => pending.push(Pending::new(socket, None, here)?),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The peer has closed its end before it was accepted.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A connection whose handshake has not come as a whole.
struct Pending {
    socket: TcpStream,
    /// The process that this one has connected to; `None` if the other end has connected.
    to: Option<u32>,
    handshake: [u8; HANDSHAKE],
    received: usize,
}

enum Received {
    Nothing,
    Stranger,
    Peer(u32),
}

impl Pending {
    /// Takes a new connection, on which a process that has connected introduces itself first.
    fn new(mut socket: TcpStream, to: Option<u32>, here: Identity) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        if let Some(to) = to {
            let sent = socket.write_all(&here.handshake());
            sent.map_err(|error| context(&error, &format!("process {to}")))?;
        }
        socket.set_nonblocking(true)?;
        Ok(Self { socket, to, handshake: [0; HANDSHAKE], received: 0 })
    }

    /// Receives what has come of the handshake, and answers it.
    fn receive(&mut self, here: Identity) -> io::Result<Received> {
        while self.received < HANDSHAKE {
            match self.socket.read(&mut self.handshake[self.received..]) {
                Ok(0) => return self.stranger(),
                Ok(count) => self.received += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(Received::Nothing);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.stranger(),
            }
        }
        let (mut bytes, own) = (&self.handshake[..], here.handshake());
        let secret_end = MAGIC.len() + size_of::<u128>();
        if bytes[..secret_end] != own[..secret_end] {
            return self.stranger();
        }
        bytes = &bytes[secret_end..];
        let mut next = || bytes.split_off(..4).and_then(|word| word.try_into().ok());
        let mut word = || next().map_or(0, u32::from_le_bytes);
        let (process, processes) = (word(), word());
        if processes != here.processes {
            let text =
                format!("process {process} expects {processes} processes, not {}", here.processes);
            return Err(invalid(text));
        }
        match self.to {
            Some(to) if to != process => {
                return Err(invalid(format!("process {process} has answered for {to}")));
            }
            Some(_) => {}
            None if process <= here.process => {
                return Err(invalid(format!("process {process} has connected twice")));
            }
            // A few bytes always fit into the buffer of a new connection.
            None => {
                let sent = self.socket.write_all(&own);
                sent.map_err(|error| context(&error, &format!("process {process}")))?;
            }
        }
        Ok(Received::Peer(process))
    }

    /// Gives up a connection that does not belong to the run.
    fn stranger(&self) -> io::Result<Received> {
        match self.to {
            Some(to) => Err(invalid(format!("process {to} does not answer as one of this run"))),
            None => Ok(Received::Stranger),
        }
    }
}

impl Identity {
    fn handshake(self) -> [u8; HANDSHAKE] {
        let mut bytes = [0; HANDSHAKE];
        let parts: [&[u8]; 4] = [
            &MAGIC,
            &self.secret.to_le_bytes(),
            &self.process.to_le_bytes(),
            &self.processes.to_le_bytes(),
        ];
        let all = parts.into_iter().flatten();
        bytes.iter_mut().zip(all).for_each(|(byte, value)| *byte = *value);
        bytes
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}

fn context(error: &io::Error, what: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
