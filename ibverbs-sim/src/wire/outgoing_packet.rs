//! Outgoing packets: made under a gate and sent after it.

use std::sync::Arc;

use super::Packet;
use crate::queue_pair::QueuePairCore;

/// A packet of a queue pair to another process.
pub(crate) struct OutgoingPacket {
    queue_pair: Arc<QueuePairCore>,
    process: u32,
    /// Serial number of a request, `None` for other packets.
    serial: Option<u32>,
    bytes: Vec<u8>,
}

impl OutgoingPacket {
    /// Makes a packet. `serial` is the number of a request, which is sent only while it is the last
    /// one and its queue pair has not been reset.
    pub(crate) fn new(
        queue_pair: Arc<QueuePairCore>,
        process: u32,
        serial: Option<u32>,
        packet: Packet<'_>,
    ) -> Self {
        Self { queue_pair, process, serial, bytes: packet.to_bytes() }
    }

    /// Passes the packet to the wire. The caller holds no gate and no lock.
    pub(crate) fn send(self) {
        let device = &self.queue_pair.context.device;
        let is_current =
            self.serial.is_none_or(|serial| self.queue_pair.remote_peer.is_last(serial));
        if let (true, Some(port)) = (is_current, &device.port) {
            // A refused request is sent again when no response comes.
            let _ = port.send(device, self.process, self.bytes);
        }
    }
}
