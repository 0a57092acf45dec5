//! The figures of one way through the network, and what they make of a message.

use super::quantity::{Factor, Rate, Span};

/// Bytes a second, by the size of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bandwidth {
    /// Rates from a size on, ascending; the first is from 0.
    pub(super) pieces: Vec<(u64, Rate)>,
}

impl Bandwidth {
    /// Returns the time of `wire` bytes of a message of `bytes`; none without a rate.
    fn ns(&self, bytes: u64, wire: u64) -> u64 {
        let above = self.pieces.partition_point(|&(from, _)| from <= bytes);
        self.pieces[..above].last().map_or(0, |(_, rate)| rate.ns(wire))
    }
}

/// Packets that messages are cut into, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Packets {
    /// Bytes of a packet with its header; 0 if messages are not cut.
    pub(super) size: u64,
    /// Bytes of the header of the first packet of a message.
    pub(super) first_header: u64,
    /// Bytes of the header of each other packet.
    pub(super) header: u64,
}

impl Packets {
    /// Returns the number of packets of a message, and its bytes with all headers.
    pub(super) fn of(&self, bytes: u64) -> (u64, u64) {
        if self.size == 0 {
            return (1, bytes.saturating_add(self.first_header));
        }
        let rest = bytes.saturating_sub(self.size - self.first_header);
        let more = rest.div_ceil(self.size - self.header);
        let headers = self.first_header.saturating_add(more.saturating_mul(self.header));
        (1 + more, bytes.saturating_add(headers))
    }
}

/// The figures of one way from sender to receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) send_overhead: Span,
    pub(super) receive_overhead: Span,
    pub(super) latency: Span,
    pub(super) gap: Span,
    pub(super) bandwidth: Bandwidth,
}

impl Route {
    /// The way of a link that costs nothing.
    pub(super) const FREE: Self = Route {
        send_overhead: Span::ZERO,
        receive_overhead: Span::ZERO,
        latency: Span::ZERO,
        gap: Span::ZERO,
        bandwidth: Bandwidth { pieces: Vec::new() },
    };

    /// Returns a way on which everything takes `factor` times as long.
    pub(super) fn slowed(&self, factor: Factor) -> Self {
        let slowed = |&(from, rate): &(u64, Rate)| (from, rate.slowed(factor));
        Route {
            send_overhead: self.send_overhead.times(factor),
            receive_overhead: self.receive_overhead.times(factor),
            latency: self.latency.times(factor),
            gap: self.gap.times(factor),
            bandwidth: Bandwidth { pieces: self.bandwidth.pieces.iter().map(slowed).collect() },
        }
    }

    /// Returns the time that `wire` bytes of a message of `bytes` need a port for.
    pub(super) fn transfer_ns(&self, bytes: u64, wire: u64) -> u64 {
        self.bandwidth.ns(bytes, wire)
    }
}
