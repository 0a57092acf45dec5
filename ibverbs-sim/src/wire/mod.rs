//! Wires: how packets get to devices of other processes.
//!
//! A device made with [`Device::with_wire`](crate::Device::with_wire) is one of several that a
//! [`Wire`] joins, one a process. Queue pairs of one process work as without a wire; one that is
//! connected to another process sends its requests there as packets:
//!
//! ```text
//! asking end                                answering end
//!     request(key, address, payload) ──►    checks the claims, does it
//!     ◄── answer(status, what was read)
//!     ◄── not ready                         no receive is posted
//!     ◄── ready                             one is, by now: the request is sent again
//! ```
//!
//! - `packet`: the packets, and how they become bytes and back.
//! - `packet`: a packet that was made under a gate and leaves after it.
//! - `port`: the device's end of the wire: sends, delivers, one thread at a time.
//! - `sockets`: a wire of sockets between processes, or threads, of one machine.
//! - The asking end is `queue_pair::remote_peer`; the answering end is the same responder that
//!   serves peers of this process, so the rules are.
//!
//! What waits to leave for a process is bounded by 64 MiB and what the queue pairs that are
//! connected to it may have under way; datagrams that nobody has received are bounded by 256 MiB.
//! Beyond that nothing more is sent or taken in, and
//! [`Device::progress`](crate::Device::progress) says so.
//!
//! What arrives is a claim. A packet that is no packet is an error of
//! [`Device::progress`](crate::Device::progress) and has no other effect; one that names a queue
//! pair which is not connected to the sender gets no answer.
//!
//! Deliberately absent: several requests of one queue pair under way. Each is answered before the
//! next is sent, so a request costs a round trip, and order, atomicity and fences hold as they do
//! in one process.

mod outgoing_packet;
mod packet;
mod port;
mod sockets;

pub(crate) use self::outgoing_packet::OutgoingPacket;
pub(crate) use self::packet::{MAX_HEADER, Packet, Request, Response, Syndrome};
pub(crate) use self::port::Port;
pub use self::sockets::SocketWire;

/// Longest packet that a wire carries. One that says it is longer comes from no device.
pub const MAX_PACKET: usize = 64 << 20;

/// What carries packets between the processes of a run. Packets from one process to another arrive
/// whole, once, and in the order of sending.
///
/// The device calls a wire under none of its locks, from any thread. A wire may call the device,
/// [`Device::progress`](crate::Device::progress) too, which does nothing during a
/// [`poll`](Self::poll); it may also end what it has of the device: memory regions, queue pairs.
/// Locks of its own that it holds meanwhile are its own affair: the device may call it back at once.
pub trait Wire: Send + Sync + 'static {
    /// The number of this process, from 0.
    fn process(&self) -> u32;

    /// How many processes there are.
    fn processes(&self) -> u32;

    /// Sends a packet to another process. Never waits: what cannot leave is kept, and leaves during
    /// a later [`poll`](Self::poll). A packet to a process that is lost is dropped.
    fn send(&self, to: u32, packet: Vec<u8>);

    /// Gives what has arrived, with its sender, to `sink`, and moves what was kept. The device
    /// calls it from one thread at a time.
    ///
    /// `sink` may call any function of the wire but this one.
    fn poll(&self, sink: &mut dyn FnMut(u32, &[u8]));

    /// Whether something that was sent has not left this process.
    fn has_unsent(&self) -> bool;

    /// Bytes that were sent to a process and have not left this one. The device bounds them: it
    /// sends nothing more to a process that does not take them in.
    fn unsent_bytes(&self, to: u32) -> usize {
        let _ = to;
        0
    }

    /// Whether nothing will arrive from a process any more.
    fn is_lost(&self, process: u32) -> bool;
}
