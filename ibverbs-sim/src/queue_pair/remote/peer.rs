//! State of a connection that the holder of the gate and the thread that delivers packets share.

use talpf_primitives::{AtomicBool, AtomicU32, Ordering};

/// Number that stands for no other process.
const LOCAL: u32 = u32::MAX;
/// Number that is no sequence number.
const NO_PSN: u32 = u32::MAX;

/// State of the connection to a peer in another process.
pub(crate) struct RemotePeer {
    /// Process of the peer; `LOCAL` if it is in this process, or if there is no peer.
    process: AtomicU32,
    /// Number of the connection, which a reset changes, so that late responses match no later
    /// request.
    pub(super) connection: AtomicU32,
    /// Number of requests under way, which the holder of the gate changes.
    pub(super) under_way: AtomicU32,
    /// Set while the peer waits for the notification of a receive.
    pub(super) notify_on_receive: AtomicBool,
    /// Number of the connection at the peer. This and what follows belongs to the thread that
    /// delivers.
    pub(super) peer_connection: AtomicU32,
    /// Sequence number up to which the requests of the peer have a response.
    pub(super) responded_psn: AtomicU32,
    /// Set once the peer has been sent the permit.
    pub(super) is_permit_sent: AtomicBool,
    /// Set while the queue pair is listed, to acknowledge requests at the end of the poll.
    pub(super) is_listed: AtomicBool,
}

impl Default for RemotePeer {
    fn default() -> Self {
        Self {
            process: AtomicU32::new(LOCAL),
            connection: AtomicU32::new(0),
            under_way: AtomicU32::new(0),
            notify_on_receive: AtomicBool::new(false),
            peer_connection: AtomicU32::new(0),
            responded_psn: AtomicU32::new(NO_PSN),
            is_permit_sent: AtomicBool::new(false),
            is_listed: AtomicBool::new(false),
        }
    }
}

impl RemotePeer {
    /// Returns the process of the peer, if it is another one.
    pub(crate) fn process(&self) -> Option<u32> {
        Some(self.process.load(Ordering::SeqCst)).filter(|process| *process != LOCAL)
    }

    pub(crate) fn set_process(&self, process: Option<u32>) {
        self.process.store(process.unwrap_or(LOCAL), Ordering::SeqCst);
        self.notify_on_receive.store(false, Ordering::SeqCst);
        self.responded_psn.store(NO_PSN, Ordering::SeqCst);
        if process.is_none() {
            self.connection.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Returns `true` if requests are under way.
    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) > 0
    }

    /// Notes that a reset has discarded all requests.
    pub(crate) fn clear_requests(&self) {
        self.under_way.store(0, Ordering::SeqCst);
    }

    /// Notes that requests of the peer need an acknowledgement, of whose `connection` they are.
    /// Returns `true` if the caller has to list the queue pair for it.
    pub(crate) fn acknowledge_later(&self, connection: u32) -> bool {
        if self.peer_connection.swap(connection, Ordering::Relaxed) != connection {
            self.is_permit_sent.store(false, Ordering::Relaxed);
        }
        !self.is_listed.swap(true, Ordering::Relaxed)
    }
}
