//! Meeting of the processes of a run: by abstract sockets, which have no name in a file system and are
//! gone with the process that has made them.

use std::{
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{ShmConfig, ShmRail, handshake::Greeted, local::LocalEnd};
use crate::wire::{ConnectAttempts, RETRY_INTERVAL};

impl ShmRail {
    /// Creates rails between `processes` threads of this process, by number.
    ///
    /// **Errors**: no memory or no descriptors for them.
    pub fn mesh(processes: u32, config: &ShmConfig) -> io::Result<Vec<Self>> {
        let ends = (0..processes).map(|process| LocalEnd::create(process, processes, config));
        let ends = ends.collect::<io::Result<Vec<_>>>()?;
        let mut peers: Vec<Vec<_>> = ends.iter().map(|_| Vec::new()).collect();
        for low in 0..ends.len() {
            for high in low + 1..ends.len() {
                let (a, b) = UnixStream::pair()?;
                ends[low].greet(&a)?;
                ends[high].greet(&b)?;
                peers[low].push((ends[low].greeted(&a)?, a));
                peers[high].push((ends[high].greeted(&b)?, b));
            }
        }
        ends.into_iter().zip(peers).map(|(end, peers)| Self::new(end, peers)).collect()
    }

    /// Connects to the other processes of a run on this machine. All of them give the same name of
    /// the run, which no other run has, and numbers from 0.
    ///
    /// **Errors**: a process has not connected in time; it expects another number of processes, or
    /// is of another version; no memory or no descriptors.
    pub fn join(
        run: &str,
        process: u32,
        processes: u32,
        timeout: Duration,
        config: &ShmConfig,
    ) -> io::Result<Self> {
        let end = LocalEnd::create(process, processes, config)?;
        let listener = UnixListener::bind_addr(&address(run, process)?)?;
        listener.set_nonblocking(true)?;
        let mut attempts = ConnectAttempts::new(timeout);
        let mut sockets = Vec::new();
        for before in 0..process {
            let address = address(run, before)?;
            let socket =
                attempts.until(|| UnixStream::connect_addr(&address)).map_err(of(before))?;
            socket.set_read_timeout(Some(timeout.max(RETRY_INTERVAL)))?;
            end.greet(&socket).map_err(of(before))?;
            sockets.push(socket);
        }
        let mut peers: Vec<(Greeted, UnixStream)> = Vec::new();
        while peers.len() < (processes - process - 1) as usize {
            let is_missing = |later: &u32| peers.iter().all(|(peer, _)| peer.process != *later);
            let missing = || (process + 1..processes).find(is_missing).unwrap_or(process);
            let accepted = attempts.until(|| listener.accept());
            let (socket, _) = accepted.map_err(|error| of(missing())(error))?;
            if !is_of_this_user(&socket) {
                continue;
            }
            socket.set_nonblocking(false)?;
            socket.set_read_timeout(Some(timeout.max(RETRY_INTERVAL)))?;
            let greeted = match end.greeted(&socket) {
                // Its number is not known: it is missed in time, by that number.
                Err(error) if has_ended(&error) => continue,
                greeted => greeted?,
            };
            let is_new = peers.iter().all(|(peer, _)| peer.process != greeted.process);
            if greeted.process <= process || !is_new {
                let text = format!("process {} has connected twice", greeted.process);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            end.greet(&socket).map_err(of(greeted.process))?;
            peers.push((greeted, socket));
        }
        let mut answered = Vec::new();
        for (before, socket) in (0..process).zip(&sockets) {
            let greeted = end.greeted(socket).map_err(of(before));
            let greeted = greeted.map_err(|error| name_others(&error, before, &sockets))?;
            if greeted.process != before {
                let text = format!("process {} has answered for {before}", greeted.process);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            answered.push(greeted);
        }
        peers.extend(answered.into_iter().zip(sockets));
        Self::new(end, peers)
    }
}

/// Returns a function that adds the number of a process to an error.
fn of(process: u32) -> impl Fn(io::Error) -> io::Error {
    move |error| {
        io::Error::new(error.kind(), format!("no connection with process {process}: {error}"))
    }
}

/// Adds the other processes that have ended to an error about one: they may be why that one has.
fn name_others(error: &io::Error, process: u32, sockets: &[UnixStream]) -> io::Error {
    let mut text = error.to_string();
    for (other, socket) in (0..).zip(sockets) {
        if other != process && is_closed(socket) {
            text += &format!(", nor with process {other}");
        }
    }
    io::Error::new(error.kind(), text)
}

/// Returns `true` if the other end of a socket is closed, whatever it has sent before.
fn is_closed(socket: &UnixStream) -> bool {
    let mut wanted = [PollFd::new(socket, PollFlags::empty())];
    let polled = poll(&mut wanted, Some(&Timespec::default()));
    polled.is_ok() && wanted[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Returns `true` for the error of a socket whose other end is closed.
fn has_ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

pub(super) fn address(run: &str, process: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("ibverbs-sim-{run}-{process}"))
}

/// Returns `true` if the process at the other end belongs to the user of this one.
fn is_of_this_user(socket: &UnixStream) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(socket);
    peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}
