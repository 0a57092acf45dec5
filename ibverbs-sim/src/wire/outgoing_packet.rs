//! A packet that was made under a gate and leaves after it.

use std::sync::Arc;

use super::Packet;
use crate::queue_pair::QueuePairCore;

/// A packet of a queue pair to another process.
pub(crate) struct OutgoingPacket {
    queue_pair: Arc<QueuePairCore>,
    process: u32,
    /// Of a request: its number, by which it is known whether it is still the last one.
    serial: Option<u32>,
    bytes: Vec<u8>,
}

impl OutgoingPacket {
    /// `serial` is that of a request, which leaves only while no other has been sent since and its
    /// queue pair was not reset.
    pub(crate) fn new(
        queue_pair: Arc<QueuePairCore>,
        process: u32,
        serial: Option<u32>,
        packet: Packet<'_>,
    ) -> Self {
        Self { queue_pair, process, serial, bytes: packet.to_bytes() }
    }

    /// Gives the packet to the wire. The caller holds no gate and no lock.
    pub(crate) fn send(self) {
        let device = &self.queue_pair.context.device;
        let is_current =
            self.serial.is_none_or(|serial| self.queue_pair.remote_peer.is_last(serial));
        if let (true, Some(port)) = (is_current, &device.port) {
            // A request that is refused is sent again when no answer comes.
            let _ = port.send(device, self.process, self.bytes);
        }
    }
}
