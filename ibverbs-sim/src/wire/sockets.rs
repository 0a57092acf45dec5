//! A wire of stream sockets: one for each pair of processes of a machine, or of threads.
//!
//! Its locks are not the device's: it hands out packets under them, and the device may answer with
//! packets of its own.
//!
//! A packet is its length, in four little-endian bytes, and its bytes. Writing and reading never
//! wait: what a socket does not take is kept in `unsent`, what has not come whole in `partial`.

use std::{
    fs,
    io::{self, ErrorKind, Read, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use super::{MAX_PACKET, Wire};

const LENGTH: usize = size_of::<u32>();
/// Bytes read at once.
const CHUNK: usize = 1 << 18;

/// Sockets to the other processes of a run.
pub struct SocketWire {
    process: u32,
    /// By process; none for this one.
    peers: Vec<Option<Peer>>,
    /// Held by the thread that polls: the bytes that have just been read.
    chunk: Mutex<Vec<u8>>,
}

struct Peer {
    socket: UnixStream,
    unsent: Mutex<Vec<u8>>,
    partial: Mutex<Vec<u8>>,
    lost: AtomicBool,
}

impl SocketWire {
    /// Wires between `processes` threads or children of this process, by number.
    ///
    /// **Errors**: no more sockets.
    pub fn mesh(processes: u32) -> io::Result<Vec<Self>> {
        let mut wires: Vec<_> = (0..processes).map(|n| Self::alone(n, processes)).collect();
        for low in 0..processes as usize {
            for high in low + 1..processes as usize {
                let (a, b) = UnixStream::pair()?;
                wires[low].peers[high] = Some(Peer::new(a)?);
                wires[high].peers[low] = Some(Peer::new(b)?);
            }
        }
        Ok(wires)
    }

    /// Meets the other processes of a run in a folder that all of them know, and that no other run
    /// uses.
    ///
    /// Every process listens there for those after it, and connects to those before it; it looks
    /// for them for as long as `patience` says.
    ///
    /// **Errors**: the folder cannot be used; a process did not come.
    pub fn join(
        folder: &Path,
        process: u32,
        processes: u32,
        retry_limits: Duration,
    ) -> io::Result<Self> {
        let mut wire = Self::alone(process, processes);
        let place = place_of(folder, process);
        let listener = UnixListener::bind(&place)?;
        listener.set_nonblocking(true)?;
        let mut looks = ConnectAttempts::new(retry_limits);
        for before in 0..process {
            let mut socket = looks.until(|| UnixStream::connect(place_of(folder, before)))?;
            socket.write_all(&process.to_le_bytes())?;
            wire.peers[before as usize] = Some(Peer::new(socket)?);
        }
        for _ in process + 1..processes {
            let (mut socket, _) = looks.until(|| listener.accept())?;
            socket.set_nonblocking(false)?;
            socket.set_read_timeout(Some(retry_limits.max(RETRY_INTERVAL)))?;
            let mut number = [0; 4];
            socket.read_exact(&mut number)?;
            let number = Some(u32::from_le_bytes(number)).filter(|number| *number > process);
            let peer = number.and_then(|number| wire.peers.get_mut(number as usize));
            *peer.ok_or(ErrorKind::InvalidData)? = Some(Peer::new(socket)?);
        }
        fs::remove_file(place)?;
        Ok(wire)
    }

    fn alone(process: u32, processes: u32) -> Self {
        let peers = (0..processes).map(|_| None).collect();
        Self { process, peers, chunk: Mutex::new(vec![0; CHUNK]) }
    }

    fn peer(&self, process: u32) -> Option<&Peer> {
        self.peers.get(process as usize)?.as_ref()
    }
}

fn place_of(folder: &Path, process: u32) -> PathBuf {
    folder.join(format!("process-{process}"))
}

/// Looks again for what is not there yet.
struct ConnectAttempts(u32);

const RETRY_INTERVAL: Duration = Duration::from_millis(1);

impl ConnectAttempts {
    fn new(retry_limits: Duration) -> Self {
        Self(u32::try_from(retry_limits.as_millis()).unwrap_or(u32::MAX))
    }

    fn until<T>(&mut self, look: impl Fn() -> io::Result<T>) -> io::Result<T> {
        loop {
            match look() {
                Ok(found) => return Ok(found),
                Err(error) if self.0 == 0 => return Err(error),
                Err(_) => thread::sleep(RETRY_INTERVAL),
            }
            self.0 -= 1;
        }
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
            // The stream would not be understood any more.
            return peer.lose();
        };
        let mut unsent = peer.unsent.lock();
        unsent.extend(length.to_le_bytes());
        unsent.extend(packet);
        peer.flush(&mut unsent);
    }

    fn poll(&self, sink: &mut dyn FnMut(u32, &[u8])) {
        let mut chunk = self.chunk.lock();
        for (process, peer) in self.peers.iter().enumerate() {
            if let Some(peer) = peer.as_ref().filter(|peer| !peer.is_lost()) {
                peer.flush(&mut peer.unsent.lock());
                peer.read(&mut chunk, &mut |packet| sink(process as u32, packet));
            }
        }
    }

    fn has_unsent(&self) -> bool {
        let waits = |peer: &Peer| !peer.is_lost() && !peer.unsent.lock().is_empty();
        self.peers.iter().flatten().any(waits)
    }

    fn unsent_bytes(&self, to: u32) -> usize {
        self.peer(to).map_or(0, |peer| peer.unsent.lock().len())
    }

    fn is_lost(&self, process: u32) -> bool {
        self.peer(process).is_some_and(Peer::is_lost)
    }
}

impl Peer {
    fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let lost = AtomicBool::new(false);
        Ok(Self { socket, unsent: Mutex::default(), partial: Mutex::default(), lost })
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Writes as much as the socket takes.
    fn flush(&self, unsent: &mut Vec<u8>) {
        let mut written = 0;
        while written < unsent.len() {
            match (&self.socket).write(&unsent[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // If the peer is gone, the next read says so, after what it has sent.
                Err(_) => break,
            }
        }
        unsent.drain(..written);
    }

    /// Reads what has come, up to a few chunks, and hands out what is whole.
    fn read(&self, chunk: &mut [u8], sink: &mut dyn FnMut(&[u8])) {
        let mut partial = self.partial.lock();
        for _ in 0..16 {
            match (&self.socket).read(chunk) {
                Ok(0) => return self.lose(),
                Ok(count) => {
                    partial.extend_from_slice(&chunk[..count]);
                    match hand_out(&partial, sink) {
                        Some(done) => drop(partial.drain(..done)),
                        None => return self.lose(),
                    }
                    if count < chunk.len() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.lose(),
            }
        }
    }
}

/// Hands out the whole packets in front, and says how many bytes they have; `None` for a length
/// that cannot be.
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
