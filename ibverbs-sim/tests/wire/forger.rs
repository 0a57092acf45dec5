//! A peer whose packets the test forges.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;

use crate::common::*;
use ibverbs_sim::*;

/// Makes a message of the rail of packets, with packets of a device.
pub(crate) fn message(packets: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::new();
    for packet in packets {
        body.extend((packet.len() as u32).to_le_bytes());
        body.extend(*packet);
    }
    let header = 1u64 | 1 << 8 | (body.len() as u64) << 32;
    [&header.to_le_bytes()[..], &body].concat()
}

/// A wire to one peer, which delivers packets of the test and stores packets that are sent.
#[derive(Default)]
pub(crate) struct Forger {
    pub(crate) arriving: Mutex<Vec<Vec<u8>>>,
    pub(crate) sent: Mutex<Vec<Vec<u8>>>,
    pub(crate) panics: AtomicBool,
}

impl Wire for Forger {
    fn process(&self) -> u32 {
        0
    }

    fn processes(&self) -> u32 {
        2
    }

    fn send(&self, _: u32, packet: Vec<u8>) {
        assert!(!self.panics.load(Ordering::SeqCst), "a wire of the program");
        self.sent.lock().push(packet);
    }

    fn poll(&self, sink: &mut dyn FnMut(u32, &[u8])) {
        let arriving = std::mem::take(&mut *self.arriving.lock());
        arriving.iter().for_each(|packet| sink(1, packet));
        assert!(!self.panics.load(Ordering::SeqCst), "a wire of the program");
    }

    fn has_unsent(&self) -> bool {
        false
    }

    /// The peer receives nothing.
    fn unsent_bytes(&self, _: u32) -> usize {
        self.sent.lock().iter().map(Vec::len).sum()
    }

    fn is_lost(&self, _: u32) -> bool {
        false
    }
}

pub(crate) struct Scene {
    pub(crate) forger: Arc<Forger>,
    pub(crate) device: Device,
    pub(crate) end: End,
    pub(crate) open: Buffer,
    pub(crate) closed: Buffer,
}

impl Scene {
    /// Creates an end with a request outstanding at the forger, which knows one region.
    pub(crate) fn new() -> Self {
        let forger = Arc::new(Forger::default());
        let device = Device::with_wire(DeviceConfig::default(), Arc::clone(&forger) as _).unwrap();
        let end = End::new(&device, |_| {});
        let connection = Connection { timeout_ns: 0, ..Connection::default() };
        end.queue_pair.connect_to(1, QueuePairNumber::from_u32(1), &connection).unwrap();
        let open = end.buffer(64);
        let closed = Buffer::new(&end.domain, 64, Access::LOCAL_WRITE);
        end.receive(3, &[open.region.slice(0, 8)]);
        let read = Operation::Read { remote: RemoteAddress::default() };
        end.post(&[request(1, read, Payload::Gather(&[open.region.slice(32, 8)]))]);
        Self { forger, device, end, open, closed }
    }

    pub(crate) fn arrives(&self, packet: &[u8]) -> Result<usize> {
        self.forger.arriving.lock().push(message(&[packet]));
        self.device.progress()
    }

    /// Makes a response packet to the request of the end, with this data.
    pub(crate) fn forge_response(&self, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![2];
        packet.extend(self.end.queue_pair.number().to_u32().to_le_bytes());
        packet.extend(1u32.to_le_bytes());
        packet.extend([0; 4 + 4 + 1 + 8]);
        packet.extend(payload);
        packet
    }

    /// Makes a request packet with these parts, as a peer would send it.
    pub(crate) fn forge(
        &self,
        opcode: u8,
        address: u64,
        key: u32,
        length: u64,
        payload: &[u8],
    ) -> Vec<u8> {
        self.forge_nth(0, opcode, address, key, length, payload)
    }

    /// Makes a request packet with the sequence number `psn`.
    pub(crate) fn forge_nth(
        &self,
        psn: u32,
        opcode: u8,
        address: u64,
        key: u32,
        length: u64,
        payload: &[u8],
    ) -> Vec<u8> {
        let mut packet = vec![1];
        packet.extend(self.end.queue_pair.number().to_u32().to_le_bytes());
        packet.extend(1u32.to_le_bytes());
        packet.extend(psn.to_le_bytes());
        packet.extend([0; 4]);
        packet.extend([0, opcode]);
        packet.extend(address.to_le_bytes());
        packet.extend(key.to_le_bytes());
        packet.extend([0; 16]);
        packet.extend(length.to_le_bytes());
        packet.extend(payload);
        packet
    }
}
