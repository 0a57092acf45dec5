//! Handshakes of processes that share memory: each sends the other its memory file, the event that
//! wakes it, and the settings that both must agree on.

use std::{
    io::{self, ErrorKind, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::{
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
    process::Pid,
};

use super::{layout::Layout, mapping::Mapping, process_memory, segment::SEALS};

/// First word of a handshake: the name of the protocol and its version.
const MAGIC: u64 = u64::from_le_bytes(*b"verbshm\x03");
const WORDS: usize = 7;
const BYTES: usize = WORDS * size_of::<u64>();

/// Settings of a process, which it sends to its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handshake {
    pub(super) process: u32,
    pub(super) processes: u32,
    pub(super) segment_bytes: u64,
    /// `true` if the process can be fenced by others.
    pub(super) is_fenced: bool,
    /// Address and content of a word, for those who probe whether they may read it.
    pub(super) probe: (u64, u64),
}

/// A peer whose handshake has come.
pub(super) struct Greeted {
    pub(super) process: u32,
    pub(super) is_fenced: bool,
    pub(super) mapping: Mapping,
    pub(super) event: OwnedFd,
    /// The process, if its own memory may be read and written.
    pub(super) reachable: Option<Pid>,
}

fn invalid(text: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}

impl Handshake {
    pub(super) fn send(
        &self,
        socket: &UnixStream,
        file: &OwnedFd,
        event: &OwnedFd,
    ) -> io::Result<()> {
        let Self { process, processes, segment_bytes, is_fenced, probe } = *self;
        let words = [
            MAGIC,
            u64::from(process),
            u64::from(processes),
            segment_bytes,
            u64::from(is_fenced),
            probe.0,
            probe.1,
        ];
        let bytes = words.map(u64::to_le_bytes);
        let descriptors = [file.as_fd(), event.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let content = [IoSlice::new(bytes.as_flattened())];
        let sent = sendmsg(socket, &content, &mut ancillary, SendFlags::NOSIGNAL)?;
        if sent < BYTES {
            return Err(ErrorKind::WriteZero.into());
        }
        Ok(())
    }

    /// Receives the handshake of a peer, and checks it against that of this process.
    pub(super) fn receive(&self, socket: &UnixStream) -> io::Result<Greeted> {
        let mut bytes = [[0; size_of::<u64>()]; WORDS];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut content = [IoSliceMut::new(bytes.as_flattened_mut())];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
        let received = recvmsg(socket, &mut content, &mut ancillary, flags)?;
        if received.bytes == 0 {
            return Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                "it has ended before its handshake",
            ));
        }
        let mut descriptors = ancillary.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let descriptors: Vec<OwnedFd> = descriptors.by_ref().flatten().collect();
        let [magic, process, processes, segment_bytes, is_fenced, address, value] =
            bytes.map(u64::from_le_bytes);
        if received.bytes < BYTES || magic != MAGIC {
            return Err(invalid("a process of another version has connected".into()));
        }
        let peer = u32::try_from(process).ok().filter(|process| *process < self.processes);
        let peer = peer.ok_or_else(|| {
            invalid(format!("process {process} has connected, of {} processes", self.processes))
        })?;
        if processes != u64::from(self.processes) {
            let text =
                format!("process {peer} expects {processes} processes, not {}", self.processes);
            return Err(invalid(text));
        }
        let [file, event] = <[OwnedFd; 2]>::try_from(descriptors)
            .map_err(|_| invalid(format!("process {peer} has sent no memory file and event")))?;
        let mapping = map(peer, self.processes, segment_bytes, &file)?;
        let pid = rustix::net::sockopt::socket_peercred(socket)?.pid;
        let reachable = Some(pid).filter(|pid| process_memory::probe(*pid, address, value));
        Ok(Greeted { process: peer, is_fenced: is_fenced != 0, mapping, event, reachable })
    }
}

/// Maps the memory file of a peer, which must be as long as it says for as long as it lives.
fn map(process: u32, processes: u32, segment_bytes: u64, file: &OwnedFd) -> io::Result<Mapping> {
    let layout = usize::try_from(segment_bytes).ok();
    let layout = layout.and_then(|bytes| Layout::new(processes, bytes));
    let seals = rustix::fs::fcntl_get_seals(file).unwrap_or(rustix::fs::SealFlags::empty());
    let length = rustix::fs::fstat(file)?.st_size as u64;
    match layout {
        Some(layout) if layout.length as u64 == length && seals.contains(SEALS) => {
            Mapping::new(file.as_fd(), layout)
        }
        _ => Err(invalid(format!(
            "process {process} has sent a memory file of {length} bytes that is not what it says"
        ))),
    }
}
