//! Links: the state that a rank has for one peer, in both directions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ibverbs_sim::{CompletionQueue, Connection, QueuePair, RemoteAddress};
use talpf_primitives::Mutex;

use super::credits::Credits;
use super::ring::StatusLine;
use super::ring_buffer::RingBuffer;
use super::ring_writer::RingWriter;
use super::sender::Sender;
use super::sleep::{BatchingLinks, must_ring_doorbell};
use super::transfers::Transfers;
use crate::error::Error;
use crate::rank::WorldRank;

/// Word of the status line for the credits that the peer gives.
pub(super) const CREDITS: usize = 0;
/// Word of the status line that is not 0 while the peer sleeps.
pub(super) const ASLEEP: usize = 1;

/// Link from a rank to one peer, on cache lines of its own.
#[repr(align(128))]
pub(super) struct Link {
    pub(super) peer: WorldRank,
    /// Number of this rank's ring for the peer.
    pub(super) incoming: usize,
    /// Cells of that ring.
    pub(super) ring_buffer: Arc<RingBuffer>,
    control_sent: CompletionQueue,
    pub(super) bulk: QueuePair,
    pub(super) bulk_sent: CompletionQueue,
    status_line: StatusLine,
    /// `true` while `sender` has a batch; changed under its lock.
    is_batching: AtomicBool,
    /// Number of links of this rank that have a batch.
    batching: Arc<BatchingLinks>,
    pub(super) sender: Mutex<Sender>,
    pub(super) transfers: Mutex<Transfers>,
}

/// End of a link, before it is connected.
pub(super) struct LinkEnd {
    pub(super) control: QueuePair,
    pub(super) control_sent: CompletionQueue,
    pub(super) bulk: QueuePair,
    pub(super) bulk_sent: CompletionQueue,
    pub(super) status_line: StatusLine,
}

impl LinkEnd {
    /// Connects this end to the other.
    pub(super) fn connect(&self, other: &LinkEnd) -> Result<(), Error> {
        self.control.connect(other.control.number(), &Connection::default())?;
        Ok(self.bulk.connect(other.bulk.number(), &Connection::default())?)
    }
}

impl Link {
    /// Creates a link. `ring` and `remote_status` are this rank's ring and status line at the peer;
    /// `batching` counts for the whole rank.
    pub(super) fn new(
        (peer, incoming, ring_buffer): (WorldRank, usize, Arc<RingBuffer>),
        batching: &Arc<BatchingLinks>,
        end: LinkEnd,
        ring: RemoteAddress,
        remote_status: RemoteAddress,
    ) -> Self {
        let LinkEnd { control, control_sent, bulk, bulk_sent, status_line } = end;
        // The first message rings the doorbell: the peer may sleep already.
        status_line.word(ASLEEP).store(1, Ordering::Relaxed);
        Link {
            peer,
            incoming,
            ring_buffer,
            control_sent,
            bulk,
            bulk_sent,
            status_line,
            is_batching: AtomicBool::new(false),
            batching: Arc::clone(batching),
            sender: Mutex::new(Sender::new(RingWriter::new(control, ring, remote_status))),
            transfers: Mutex::default(),
        }
    }

    /// Notes that `sender` has a batch, or none any more. The caller has `sender` locked.
    pub(super) fn set_batching(&self, is_batching: bool) {
        self.is_batching.store(is_batching, Ordering::Relaxed);
        if is_batching {
            self.batching.begin();
        } else {
            self.batching.end();
        }
    }

    /// Returns `true` if `sender` has a batch. Ordered by the count of the rank only.
    #[inline]
    pub(super) fn is_batching(&self) -> bool {
        self.is_batching.load(Ordering::Relaxed)
    }

    /// Returns the credits that the peer has reported.
    #[inline]
    pub(super) fn credits(&self) -> Credits {
        Credits::load(self.status_line.word(CREDITS))
    }

    /// Returns `true`, to one caller, if the peer sleeps: that caller rings the doorbell. To be
    /// called after the post that the peer has to see.
    #[inline]
    pub(super) fn must_ring_doorbell(&self) -> bool {
        must_ring_doorbell(self.status_line.word(ASLEEP))
    }

    /// Takes the completions of writes to the ring and the status line. Nobody waits for them, and
    /// only failed ones matter.
    pub(super) fn take_completions(&self) -> Result<(), Error> {
        if self.control_sent.is_empty() {
            return Ok(());
        }
        let mut completions = [Default::default(); 8];
        let count = self.control_sent.poll(&mut completions);
        completions[..count].iter().try_for_each(|completion| self.check(completion))
    }

    /// Arms the channel for the next completion of a read or write, and for failures.
    pub(super) fn arm(&self) -> Result<(), Error> {
        self.control_sent.request_notify(false)?;
        Ok(self.bulk_sent.request_notify(false)?)
    }

    /// Checks the status of a completion.
    ///
    /// **Errors**: the request failed.
    pub(super) fn check(&self, completion: &ibverbs_sim::WorkCompletion) -> Result<(), Error> {
        match completion.status {
            ibverbs_sim::CompletionStatus::Success => Ok(()),
            status => {
                Err(Error::WorkRequest { peer: self.peer.into(), status: format!("{status:?}") })
            }
        }
    }
}
