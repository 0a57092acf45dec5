//! MPI as a wire, which carries packets between the devices of several processes.
//!
//! A packet is a message with a fixed tag in a communicator of this crate, so packets from one
//! process to another arrive in order. Sends keep their packet until MPI has read it. One receive
//! is under way at a time, which keeps the order.
#![allow(unsafe_code, reason = "lends packets to MPI")]

use std::sync::atomic::{AtomicBool, Ordering};

use ibverbs_sim::{MAX_PACKET, Wire};
use parking_lot::Mutex;

use super::library::Shared;
use super::{Library, RawRequest, Refused, Shape};
use crate::transport::SendMode;

/// The processes that `mpirun` has started, joined by MPI, for
/// [`Device::with_wire`](ibverbs_sim::Device::with_wire).
///
/// Dropping the wire drops the [`Library`], which finalises MPI on the thread that has initialised
/// it, and does not on another.
pub struct MpiWire {
    sends: Mutex<Sends>,
    receive: Mutex<Option<Receiving>>,
    /// Set once a call of MPI has failed: no later result can be relied on.
    broken: AtomicBool,
    library: Shared,
}

/// Sends under way.
struct Sends {
    list: Vec<Sending>,
    /// Bytes of the list, by process.
    bytes: Box<[usize]>,
}

struct Sending {
    request: RawRequest,
    to: u32,
    /// Packet that MPI reads until the request completes.
    packet: Vec<u8>,
}

struct Receiving {
    request: RawRequest,
    source: u32,
    packet: Vec<u8>,
}

/// Tag of all packets.
const TAG: u32 = 0;
/// Packets delivered by one poll, so that other threads get to poll, too.
const PACKETS: usize = 64;

impl MpiWire {
    /// Creates a wire over `library`.
    pub fn new(library: Library) -> Self {
        let bytes = vec![0; library.size() as usize].into_boxed_slice();
        let sends = Mutex::new(Sends { list: Vec::new(), bytes });
        let (receive, broken) = (Mutex::default(), AtomicBool::new(false));
        MpiWire { sends, receive, broken, library: Shared(library) }
    }

    fn start(&self, to: u32, packet: Vec<u8>) -> Result<Sending, Refused> {
        let shape = Shape::contiguous(packet.len())?;
        let (world, mode) = (self.library.world(), SendMode::Standard);
        // SAFETY: the packet is kept unchanged beside the request, which is dropped only once it
        // has completed (`poll`), or never (`drop`).
        let request = unsafe { world.start_send(mode, packet.as_ptr(), &shape, to, TAG)? };
        Ok(Sending { request, to, packet })
    }

    /// Starts to receive the next packet, if one has arrived.
    ///
    /// **Errors**: an error of MPI; a packet that is too long.
    fn take_next(&self) -> Result<Option<Receiving>, Refused> {
        let Some((matched, status)) = self.library.world().probe_matched(None, Some(TAG))? else {
            return Ok(None);
        };
        if status.bytes > MAX_PACKET {
            let reason = format!("a packet of {} bytes, at most {MAX_PACKET}", status.bytes);
            return Err(Refused { call: "MPI_Mprobe", code: 0, reason });
        }
        let mut packet = vec![0; status.bytes];
        let shape = Shape::contiguous(status.bytes)?;
        // SAFETY: the packet is kept, and not touched, beside the request until that completes, or
        // for ever (`drop`).
        let request = unsafe { matched.start_receive(packet.as_mut_ptr(), &shape)? };
        Ok(Some(Receiving { request, source: status.source, packet }))
    }

    /// Tests the sends. **Errors**: an error of MPI.
    fn take_sent(&self) -> Result<(), ()> {
        let mut result = Ok(());
        let Sends { list, bytes } = &mut *self.sends.lock();
        list.retain_mut(|sending| match sending.request.test() {
            Ok(None) => true,
            Ok(Some(outcome)) => {
                bytes[sending.to as usize] -= sending.packet.len();
                result = result.and(outcome.map(drop).map_err(drop));
                false
            }
            // MPI may still read the packet.
            Err(_) => {
                result = Err(());
                true
            }
        });
        result
    }

    /// Delivers the packets that have arrived to `sink`. **Errors**: an error of MPI.
    fn take_received(&self, sink: &mut dyn FnMut(u32, &[u8])) -> Result<(), ()> {
        let mut receive = self.receive.lock();
        for _ in 0..PACKETS {
            if receive.is_none() {
                *receive = self.take_next().map_err(drop)?;
            }
            let Some(receiving) = &mut *receive else {
                return Ok(());
            };
            let Some(outcome) = receiving.request.test().map_err(drop)? else {
                return Ok(());
            };
            let received = receive.take().filter(|_| outcome.is_ok()).ok_or(())?;
            sink(received.source, &received.packet);
        }
        Ok(())
    }
}

impl Wire for MpiWire {
    fn process(&self) -> u32 {
        self.library.rank()
    }

    fn processes(&self) -> u32 {
        self.library.size()
    }

    fn send(&self, to: u32, packet: Vec<u8>) {
        // Held while the send starts: packets start in the order of their sends.
        let mut sends = self.sends.lock();
        match self.start(to, packet) {
            Ok(sending) => {
                sends.bytes[to as usize] += sending.packet.len();
                sends.list.push(sending);
            }
            Err(_) => self.broken.store(true, Ordering::Release),
        }
    }

    fn poll(&self, sink: &mut dyn FnMut(u32, &[u8])) {
        if self.take_sent().and_then(|()| self.take_received(sink)).is_err() {
            self.broken.store(true, Ordering::Release);
        }
    }

    fn has_unsent(&self) -> bool {
        !self.sends.lock().list.is_empty()
    }

    fn unsent_bytes(&self, to: u32) -> usize {
        self.sends.lock().bytes.get(to as usize).copied().unwrap_or(0)
    }

    fn is_lost(&self, _: u32) -> bool {
        self.broken.load(Ordering::Acquire)
    }
}

impl Drop for MpiWire {
    fn drop(&mut self) {
        let _ = self.take_sent();
        if self.has_unsent() || self.receive.lock().is_some() {
            // MPI still uses the packets, and would wait for a process that does not exist any
            // more.
            self.library.abort(1);
        }
    }
}
