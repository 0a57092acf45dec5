//! Wires: transports of packets, from which the simplest rails are made.
//!
//! - `sockets`: a wire of sockets, between processes or threads of one machine.
//! - `tcp`: the same between machines.
//!
//! [`Packets`](crate::Packets) is the rail over any wire.

mod sockets;
mod tcp;

pub use self::sockets::SocketWire;
pub(crate) use self::sockets::{ConnectAttempts, RETRY_INTERVAL};
pub use self::tcp::TcpMeeting;

use std::os::fd::BorrowedFd;

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

    /// Ends the connection with a process that shows no life, which is lost then.
    fn give_up(&self, process: u32) {
        let _ = process;
    }

    /// Returns a file descriptor that is readable as long as [`poll`](Self::poll) has something to do:
    /// packets have arrived, queued ones can be sent, or a process is lost. `None` if the wire has
    /// none: it is polled again and again then.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
