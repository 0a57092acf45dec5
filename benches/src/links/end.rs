#![allow(unsafe_code, reason = "memory is registered with a rail, and written by its peer")]
//! An end of a link: a rail, memory that the peer may write, and the memory of the peer.

use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;

use ibverbs_sim::{Access, Posted, Rail, RailAddress, RailError, RailEvent, RailKey, RailMemory};

use super::Wanted;
use super::join::{TIMEOUT, join};
use crate::error::Error;

/// Sizes of the writes of ping-pongs. A notice of `n + 1` asks for an answer of size `n`.
pub(super) const SIZES: [usize; 3] = [8, 64 << 10, 1 << 20];
const LARGEST: usize = 16 << 20;
/// Most reads that are under way.
const READS: usize = 16;
/// Notice that asks for nothing.
const NO_ANSWER: u32 = 0;
/// Notice that ends a sample.
const STOP: u32 = u32::MAX;

pub(super) struct End {
    rail: Arc<dyn Rail>,
    to: u32,
    peer_key: RailKey,
    key: RailKey,
    source: Box<[u8]>,
    _memory: Memory,
    /// Notices that have arrived and were not taken.
    notices: Vec<u32>,
    /// Writes that are under way.
    under_way: usize,
    is_lost: bool,
}

/// Memory that the peer writes.
enum Memory {
    OfRail(Box<dyn RailMemory>),
    Private(Box<[u8]>),
}

impl Memory {
    fn start(&mut self) -> NonNull<[u8]> {
        match self {
            Self::OfRail(memory) => memory.memory(),
            Self::Private(bytes) => NonNull::from(&mut bytes[..]),
        }
    }
}

impl End {
    /// Joins the other end, and exchanges keys with it.
    pub(super) fn join(folder: &Path, wanted: &Wanted, process: u32) -> Result<Self, Error> {
        let refused = |reason| Error::System { doing: "joining a peer", reason };
        let rail = join(folder, wanted, process)?;
        let mut memory = match rail.allocate(LARGEST) {
            Some(memory) => Memory::OfRail(memory),
            None => Memory::Private(vec![0; LARGEST].into_boxed_slice()),
        };
        // SAFETY: the memory stays until the key is deregistered, and only peers use it.
        let key = unsafe { rail.register(memory.start(), Access::ALL) }.map_err(broken)?;
        let to = 1 - process;
        rail.send(to, key.as_bytes()).map_err(broken)?;
        let mut peer_key = None;
        let start = Instant::now();
        while peer_key.is_none() {
            rail.poll(&mut |event| {
                if let RailEvent::Message { bytes, .. } = event {
                    peer_key = RailKey::from_bytes(bytes);
                }
            });
            if start.elapsed() > TIMEOUT {
                return Err(refused(std::io::ErrorKind::TimedOut.into()));
            }
        }
        let peer_key = peer_key.unwrap_or(key);
        let source = vec![1; LARGEST].into_boxed_slice();
        let notices = Vec::with_capacity(1 << 12);
        Ok(Self {
            rail,
            to,
            peer_key,
            key,
            source,
            _memory: memory,
            notices,
            under_way: 0,
            is_lost: false,
        })
    }

    /// Writes to the peer with a notice.
    fn write(&mut self, size: usize, notice: u32) {
        // SAFETY: nobody changes the source.
        let post = |rail: &dyn Rail, to, local, remote: &RailAddress| unsafe {
            rail.write(to, local, remote, Some(notice), 0)
        };
        self.post(size, post);
    }

    /// Reads from the peer.
    fn read(&mut self, size: usize) {
        // SAFETY: nobody else uses the source, and in which order it is overwritten makes no difference.
        let post = |rail: &dyn Rail, to, local, remote: &RailAddress| unsafe {
            rail.read(to, local, remote, 0)
        };
        self.post(size, post);
    }

    /// Posts an operation between the source and the memory of the peer, once there is room.
    fn post(
        &mut self,
        size: usize,
        post: impl Fn(&dyn Rail, u32, NonNull<[u8]>, &RailAddress) -> Result<Posted, RailError>,
    ) {
        let local = NonNull::from(&mut self.source[..size]);
        let remote = RailAddress { key: self.peer_key, offset: 0 };
        loop {
            match post(&*self.rail, self.to, local, &remote) {
                Ok(Posted::Ended(_)) => return,
                Ok(Posted::UnderWay) => {
                    self.under_way += 1;
                    return;
                }
                Err(RailError::NoRoom { .. }) => self.poll(),
                Err(_) => {
                    self.is_lost = true;
                    return;
                }
            }
        }
    }

    fn poll(&mut self) {
        let Self { notices, under_way, is_lost, .. } = self;
        self.rail.poll(&mut |event| match event {
            RailEvent::Notice { notice, .. } if notice != NO_ANSWER => notices.push(notice),
            RailEvent::Completed { .. } => *under_way -= 1,
            RailEvent::Lost { .. } => *is_lost = true,
            _ => {}
        });
    }

    /// Waits for a notice; `None` once the peer is lost.
    fn next(&mut self) -> Option<u32> {
        loop {
            if let Some(notice) = self.notices.pop() {
                return Some(notice);
            }
            if self.is_lost {
                return None;
            }
            self.poll();
            std::hint::spin_loop();
        }
    }

    /// Ends a sample at the peer.
    pub(super) fn stop(&mut self) {
        self.write(0, STOP);
    }

    /// Answers writes until the peer stops, or ends.
    pub(super) fn serve(&mut self) {
        while let Some(notice) = self.next().filter(|notice| *notice != STOP) {
            let size = SIZES.get(notice as usize - 1).copied().unwrap_or(SIZES[0]);
            self.write(size, notice);
        }
    }

    /// Measures a ping-pong of writes of one of the [`SIZES`].
    pub(super) fn one_way_ns(&mut self, size: usize, times: usize) -> f64 {
        let notice = SIZES.iter().position(|one| *one == size).unwrap_or(0) as u32 + 1;
        // The peer has to wake up first.
        self.write(size, notice);
        self.next();
        let start = Instant::now();
        for _ in 0..times {
            self.write(size, notice);
            self.next();
        }
        start.elapsed().as_nanos() as f64 / (2 * times) as f64
    }

    /// Measures reads, one behind the other, until all have ended.
    ///
    /// **Units**: seconds a read.
    pub(super) fn reads_s(&mut self, size: usize, reads: usize) -> f64 {
        self.one_way_ns(SIZES[0], 1);
        let start = Instant::now();
        for _ in 0..reads {
            while self.under_way >= READS && !self.is_lost {
                self.poll();
            }
            self.read(size);
        }
        while self.under_way > 0 && !self.is_lost {
            self.poll();
        }
        start.elapsed().as_secs_f64() / reads as f64
    }

    /// Measures writes with notices, one behind the other, until all have ended and one more was answered.
    ///
    /// **Units**: seconds a write.
    pub(super) fn stream_s(&mut self, size: usize, writes: usize) -> f64 {
        self.one_way_ns(SIZES[0], 1);
        let start = Instant::now();
        for _ in 1..writes {
            self.write(size, NO_ANSWER);
        }
        while self.under_way > 0 && !self.is_lost {
            self.poll();
        }
        self.write(size, 1);
        self.next();
        start.elapsed().as_secs_f64() / writes as f64
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // Registered above; from now on the peer writes nothing.
        let _ = self.rail.deregister(&self.key);
    }
}

fn broken(error: RailError) -> Error {
    Error::System { doing: "using a rail", reason: std::io::Error::other(error) }
}
