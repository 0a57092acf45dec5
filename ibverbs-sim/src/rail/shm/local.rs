//! The end of a rail that lies in this process, before it has peers.

use std::{
    io::{self, ErrorKind},
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::Arc,
};

use rustix::{
    event::{EventfdFlags, eventfd},
    process::{Resource, getrlimit},
};

use super::{
    ShmConfig,
    fence::AsymmetricFence,
    handshake::{Greeted, Handshake},
    layout::Layout,
    segment::MemoryFile,
};

pub(super) struct LocalEnd {
    pub(super) handshake: Handshake,
    pub(super) file: Arc<MemoryFile>,
    /// Readable once a peer has woken this process.
    pub(super) event: OwnedFd,
    kernel_copies: bool,
    /// Word that peers probe.
    _probe: Box<u64>,
}

/// Returns the bytes that the segments of each process may have, if those of all of them take half of the address space
/// that a limit leaves to this one.
fn share_of_addresses(processes: u32) -> usize {
    let limit = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
    (limit / 2 / u64::from(processes)) as usize
}

impl LocalEnd {
    pub(super) fn create(process: u32, processes: u32, config: &ShmConfig) -> io::Result<Self> {
        if process >= processes {
            let text = format!("process {process} of {processes}");
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        let segment_bytes = config.segment_bytes.min(share_of_addresses(processes));
        let layout = Layout::new(processes, segment_bytes).ok_or_else(|| {
            let text = format!("segments of {segment_bytes} bytes: no file is that long");
            io::Error::new(ErrorKind::InvalidInput, text)
        })?;
        let file = Arc::new(MemoryFile::create(layout)?);
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let mut probe = Box::new(0);
        let address = std::ptr::from_ref(&*probe).addr() as u64;
        *probe = address.rotate_left(32) ^ u64::from(std::process::id());
        let handshake = Handshake {
            process,
            processes,
            segment_bytes: segment_bytes as u64,
            is_fenced: AsymmetricFence::allow(),
            probe: (address, *probe),
        };
        let kernel_copies = config.kernel_copies;
        Ok(Self { handshake, file, event, kernel_copies, _probe: probe })
    }

    /// Returns `true` if the kernel copies to and from memory of the processes that is no segment.
    pub(super) fn has_kernel_copies(&self) -> bool {
        self.kernel_copies
    }

    /// Sends the handshake of this process.
    pub(super) fn greet(&self, socket: &UnixStream) -> io::Result<()> {
        self.handshake.send(socket, &self.file.file, &self.event)
    }

    /// Receives the handshake of a peer.
    pub(super) fn greeted(&self, socket: &UnixStream) -> io::Result<Greeted> {
        let mut greeted = self.handshake.receive(socket)?;
        greeted.reachable = greeted.reachable.filter(|_| self.kernel_copies);
        Ok(greeted)
    }
}
