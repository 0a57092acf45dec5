//! Wires: the transport of packets to devices of other processes.
//!
//! A device made with [`Device::with_wire`](crate::Device::with_wire) is one of several that a
//! [`Wire`] joins, one in each process. Queue pairs of one process work as without a wire; a queue
//! pair that is connected to another process sends its requests there as packets:
//!
//! ```text
//! requester                                 responder
//!     request(key, address, payload) ──►    checks the claims, carries it out
//!     ◄── response: ACK, data, or NAK
//!     ◄── response: RNR NAK                 no receive is posted
//!     ◄── receiver ready                    one is posted now: the request is sent again
//! ```
//!
//! - `packet`: the packets, and their conversion to bytes and back.
//! - `outgoing_packet`: a packet that was made under a gate and is sent after it.
//! - `port`: the device's end of the wire: sends from any thread, delivers in one thread at a time.
//! - `sockets`: a wire of sockets between processes, or threads, of one machine.
//! - The requesting end is `queue_pair::remote`; the responding end is the same responder that
//!   serves peers of this process, so the rules are the same.
//!
//! The bytes that are queued for a process are bounded by 64 MiB and the bytes that the queue pairs
//! connected to it may have outstanding; datagrams that have not been taken are bounded by 256 MiB.
//! Beyond that nothing more is sent or received, and [`Device::progress`](crate::Device::progress)
//! returns an error.
//!
//! Everything that arrives is a claim. A malformed packet is an error of
//! [`Device::progress`](crate::Device::progress) and has no other effect; a packet to a queue pair
//! that is not connected to the sender gets no response.
//!
//! Deliberately absent: several outstanding requests of one queue pair. Each gets its response
//! before the next is sent, so a request costs a round trip, and order, atomicity and fences hold
//! as they do in one process.

mod outgoing_packet;
mod packet;
mod port;
mod sockets;

pub(crate) use self::outgoing_packet::OutgoingPacket;
pub(crate) use self::packet::{MAX_HEADER, Packet, Request, Response, Syndrome};
pub(crate) use self::port::Port;
pub use self::sockets::SocketWire;
pub(crate) use self::sockets::{ConnectAttempts, RETRY_INTERVAL};

/// Longest packet that a wire carries. No device sends a longer one.
pub const MAX_PACKET: usize = 64 << 20;

/// A transport of packets between the processes of a run. Packets from one process to another
/// arrive whole, once, and in the order of sending.
///
/// The device calls a wire under none of its locks, from any thread. A wire may call the device,
/// including [`Device::progress`](crate::Device::progress), which does nothing during a
/// [`poll`](Self::poll); it may also drop memory regions and queue pairs of the device. A wire that
/// calls the device under a lock of its own must expect that the device calls it back at once.
pub trait Wire: Send + Sync + 'static {
    /// Returns the number of this process, from 0.
    fn process(&self) -> u32;

    /// Returns the number of processes.
    fn processes(&self) -> u32;

    /// Sends a packet to another process. Never waits: a packet that cannot be sent at once is
    /// queued, and sent during a later [`poll`](Self::poll). A packet to a lost process is dropped.
    fn send(&self, to: u32, packet: Vec<u8>);

    /// Passes packets that have arrived, with their senders, to `sink`, and sends queued packets.
    /// The device calls it from one thread at a time.
    ///
    /// `sink` may call any function of the wire except this one.
    fn poll(&self, sink: &mut dyn FnMut(u32, &[u8]));

    /// Returns `true` if packets are queued that have not left this process.
    fn has_unsent(&self) -> bool;

    /// Returns the bytes that are queued for a process. The device bounds them: it sends nothing
    /// more to a process that does not receive.
    fn unsent_bytes(&self, to: u32) -> usize {
        let _ = to;
        0
    }

    /// Returns `true` if no packet will arrive from a process any more.
    fn is_lost(&self, process: u32) -> bool;
}
