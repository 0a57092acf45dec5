//! Wires of stream sockets: one for each pair of processes, or of threads. Sockets without a network
//! join those of one machine (here), TCP those of several (`tcp`).
//!
//! The wire passes packets to the device under locks of its own, and the device may respond with
//! packets.
//!
//! A packet is sent as its length, in four little-endian bytes, and its bytes. Writing and reading
//! never wait: bytes that a socket does not accept are kept in `unsent`, and an incomplete packet
//! in `partial`.
//!
//! All sockets are in one epoll instance, on which the process may sleep. It reports a socket whose
//! peer has sent or ended, and as long as bytes are unsent one that accepts some.

use std::{
    fs,
    io::{self, ErrorKind, Read, Write as _},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::{
    event::epoll,
    io::Errno,
    net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown},
};

use super::{MAX_PACKET, Wire};

const LENGTH: usize = size_of::<u32>();
/// Most bytes of one read.
const CHUNK: usize = 1 << 18;
/// Data of events that nobody reads.
const NO_DATA: epoll::EventData = epoll::EventData::new_u64(0);
const NOTHING: epoll::EventFlags = epoll::EventFlags::empty();

/// Sockets to the other processes of a run.
pub struct SocketWire {
    process: u32,
    /// Peers by process; `None` for this one.
    peers: Vec<Option<Peer>>,
    /// Epoll instance with the sockets of all peers that are not lost.
    ready: OwnedFd,
    /// Bytes that have just been read. Locked by the thread that polls.
    chunk: Mutex<Vec<u8>>,
}

struct Peer {
    socket: OwnedFd,
    unsent: Mutex<Unsent>,
    partial: Mutex<Vec<u8>>,
    lost: AtomicBool,
}

#[derive(Default)]
struct Unsent {
    bytes: Vec<u8>,
    /// `true` while the socket is reported once it accepts bytes.
    is_awaited: bool,
}

impl SocketWire {
    /// Creates wires between `processes` threads or children of this process, by number.
    ///
    /// **Errors**: a socket cannot be created.
    pub fn mesh(processes: u32) -> io::Result<Vec<Self>> {
        let wires = (0..processes).map(|n| Self::alone(n, processes));
        let mut wires = wires.collect::<io::Result<Vec<_>>>()?;
        for low in 0..processes as usize {
            for high in low + 1..processes as usize {
                let (a, b) = UnixStream::pair()?;
                wires[low].add(high as u32, a)?;
                wires[high].add(low as u32, b)?;
            }
        }
        Ok(wires)
    }

    /// Connects to the other processes of a run through a folder that all of them know, and that no
    /// other run uses.
    ///
    /// Every process listens there for those with higher numbers, and connects to those with lower
    /// ones. It retries until `timeout` has passed.
    ///
    /// **Errors**: the folder cannot be used; a process has not connected in time.
    pub fn join(
        folder: &Path,
        process: u32,
        processes: u32,
        timeout: Duration,
    ) -> io::Result<Self> {
        let mut wire = Self::alone(process, processes)?;
        let path = socket_path(folder, process);
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        let mut attempts = ConnectAttempts::new(timeout);
        for before in 0..process {
            let mut socket = attempts.until(|| UnixStream::connect(socket_path(folder, before)))?;
            socket.write_all(&process.to_le_bytes())?;
            wire.add(before, socket)?;
        }
        for _ in process + 1..processes {
            let (mut socket, _) = attempts.until(|| listener.accept())?;
            socket.set_nonblocking(false)?;
            socket.set_read_timeout(Some(timeout.max(RETRY_INTERVAL)))?;
            let mut number = [0; 4];
            socket.read_exact(&mut number)?;
            let number = Some(u32::from_le_bytes(number)).filter(|number| *number > process);
            wire.add(number.ok_or(ErrorKind::InvalidData)?, socket)?;
        }
        fs::remove_file(path)?;
        Ok(wire)
    }

    /// Creates a wire that reaches nobody yet.
    pub(super) fn alone(process: u32, processes: u32) -> io::Result<Self> {
        let peers = (0..processes).map(|_| None).collect();
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { process, peers, ready, chunk: Mutex::new(vec![0; CHUNK]) })
    }

    /// Adds the socket to a process.
    pub(super) fn add(&mut self, process: u32, socket: impl Into<OwnedFd>) -> io::Result<()> {
        let peer = self.peers.get_mut(process as usize).ok_or(ErrorKind::InvalidData)?;
        let socket = socket.into();
        rustix::io::ioctl_fionbio(&socket, true)?;
        epoll::add(&self.ready, &socket, NO_DATA, epoll::EventFlags::IN)?;
        *peer = Some(Peer::new(socket));
        Ok(())
    }

    fn peer(&self, process: u32) -> Option<&Peer> {
        self.peers.get(process as usize)?.as_ref()
    }
}

fn socket_path(folder: &Path, process: u32) -> PathBuf {
    folder.join(format!("process-{process}"))
}

/// Attempts to reach other processes, of which a limited number is left.
pub(crate) struct ConnectAttempts(u32);

pub(crate) const RETRY_INTERVAL: Duration = Duration::from_millis(1);

impl ConnectAttempts {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self(u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX))
    }

    pub(crate) fn until<T>(&mut self, attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
        loop {
            match attempt() {
                Ok(found) => return Ok(found),
                Err(error) => {
                    if !self.wait() {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Sleeps before the next attempt. Returns `false` if none is left.
    pub(crate) fn wait(&mut self) -> bool {
        let is_left = self.0 > 0;
        if is_left {
            thread::sleep(RETRY_INTERVAL);
            self.0 -= 1;
        }
        is_left
    }
}

impl Wire for SocketWire {
    fn process(&self) -> u32 {
        self.process
    }

    fn processes(&self) -> u32 {
        self.peers.len() as u32
    }

    fn send(&self, to: u32, packet: Vec<u8>) {
        let Some(peer) = self.peer(to).filter(|peer| !peer.is_lost()) else {
            return;
        };
        let Some(length) = u32::try_from(packet.len()).ok().filter(|_| packet.len() <= MAX_PACKET)
        else {
            // The peer could not find the next packet in the stream.
            return peer.lose(&self.ready);
        };
        let mut unsent = peer.unsent.lock();
        unsent.bytes.extend(length.to_le_bytes());
        unsent.bytes.extend(packet);
        peer.flush(&mut unsent, &self.ready);
    }

    fn poll(&self, sink: &mut dyn FnMut(u32, &[u8])) {
        let mut chunk = self.chunk.lock();
        for (process, peer) in self.peers.iter().enumerate() {
            if let Some(peer) = peer.as_ref().filter(|peer| !peer.is_lost()) {
                peer.flush(&mut peer.unsent.lock(), &self.ready);
                let mut sink = |packet: &[u8]| sink(process as u32, packet);
                if !peer.read(&mut chunk, &mut sink) {
                    peer.lose(&self.ready);
                }
            }
        }
    }

    fn has_unsent(&self) -> bool {
        let waits = |peer: &Peer| !peer.is_lost() && !peer.unsent.lock().bytes.is_empty();
        self.peers.iter().flatten().any(waits)
    }

    fn unsent_bytes(&self, to: u32) -> usize {
        self.peer(to).map_or(0, |peer| peer.unsent.lock().bytes.len())
    }

    fn is_lost(&self, process: u32) -> bool {
        self.peer(process).is_some_and(Peer::is_lost)
    }

    fn give_up(&self, process: u32) {
        if let Some(peer) = self.peer(process) {
            // The next read returns the end of the stream. The peer may have ended before.
            let _ = shutdown(&peer.socket, Shutdown::Both);
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ready.as_fd())
    }
}

impl Peer {
    fn new(socket: OwnedFd) -> Self {
        let lost = AtomicBool::new(false);
        Self { socket, unsent: Mutex::default(), partial: Mutex::default(), lost }
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    fn lose(&self, ready: &OwnedFd) {
        if !self.lost.swap(true, Ordering::AcqRel) {
            // A socket whose peer has ended stays readable.
            let _ = epoll::delete(ready, &self.socket);
        }
    }

    /// Writes as many bytes as the socket accepts, and has the socket reported once it accepts the
    /// others.
    fn flush(&self, unsent: &mut Unsent, ready: &OwnedFd) {
        let Unsent { bytes, is_awaited } = unsent;
        let mut written = 0;
        while written < bytes.len() {
            match send(&self.socket, &bytes[written..], SendFlags::NOSIGNAL) {
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                // If the peer is gone, the next read returns an error, after the bytes it has sent.
                Err(_) => break,
            }
        }
        bytes.drain(..written);
        if *is_awaited == bytes.is_empty() {
            *is_awaited = !bytes.is_empty();
            let output = if *is_awaited { epoll::EventFlags::OUT } else { NOTHING };
            // It fails only if the peer is lost.
            let _ = epoll::modify(ready, &self.socket, NO_DATA, epoll::EventFlags::IN | output);
        }
    }

    /// Reads available bytes, up to a few chunks, and passes complete packets to `sink`. Returns
    /// `false` if nothing will arrive any more.
    fn read(&self, chunk: &mut [u8], sink: &mut dyn FnMut(&[u8])) -> bool {
        let mut partial = self.partial.lock();
        for _ in 0..16 {
            match recv(&self.socket, &mut *chunk, RecvFlags::empty()) {
                Ok((0, _)) => return false,
                Ok((count, _)) => {
                    partial.extend_from_slice(&chunk[..count]);
                    match hand_out(&partial, sink) {
                        Some(done) => drop(partial.drain(..done)),
                        None => return false,
                    }
                    if count < chunk.len() {
                        return true;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

/// Passes the complete packets at the front of `bytes` to `sink`, and returns the number of their
/// bytes; `None` for an impossible length.
fn hand_out(bytes: &[u8], sink: &mut dyn FnMut(&[u8])) -> Option<usize> {
    let mut done = 0;
    while let Some((length, rest)) = bytes[done..].split_first_chunk::<LENGTH>() {
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_PACKET {
            return None;
        }
        let Some(packet) = rest.get(..length) else { break };
        sink(packet);
        done += LENGTH + length;
    }
    Some(done)
}
