//! What a rank has for one peer: both directions' state, and what the peer tells.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ibverbs_sim::{CompletionQueue, Connection, QueuePair, RemoteAddress};
use talpf_primitives::Mutex;

use super::credits::Credits;
use super::front::Front;
use super::outlet::Outlet;
use super::ring::Told;
use super::sender::Sender;
use super::sleeper::{Collecting, is_to_ring};
use super::transfers::Transfers;
use crate::error::Error;
use crate::rank::WorldRank;

/// The words of the line that the peer writes: what it has taken, and whether it sleeps.
pub(super) const CREDITS: usize = 0;
pub(super) const ASLEEP: usize = 1;

/// See the module text. On lines of its own.
#[repr(align(128))]
pub(super) struct Link {
    pub(super) peer: WorldRank,
    /// The number of the ring that is kept here for the peer.
    pub(super) incoming: usize,
    /// What has come from the peer.
    pub(super) front: Arc<Front>,
    control_sent: CompletionQueue,
    pub(super) bulk: QueuePair,
    pub(super) bulk_sent: CompletionQueue,
    told: Told,
    /// Changed under the lock of `sender`: cells are collected there.
    is_collecting: AtomicBool,
    /// How many links of this rank are.
    collecting: Arc<Collecting>,
    pub(super) sender: Mutex<Sender>,
    pub(super) transfers: Mutex<Transfers>,
}

/// One end of a link, before it knows the other.
pub(super) struct End {
    pub(super) control: QueuePair,
    pub(super) control_sent: CompletionQueue,
    pub(super) bulk: QueuePair,
    pub(super) bulk_sent: CompletionQueue,
    pub(super) told: Told,
}

impl End {
    /// Connects this end to the other.
    pub(super) fn connect(&self, other: &End) -> Result<(), Error> {
        self.control.connect(other.control.number(), &Connection::default())?;
        Ok(self.bulk.connect(other.bulk.number(), &Connection::default())?)
    }
}

impl Link {
    /// `ring` and `tell` are at the peer; `collecting` is the rank's.
    pub(super) fn new(
        (peer, incoming, front): (WorldRank, usize, Arc<Front>),
        collecting: &Arc<Collecting>,
        end: End,
        ring: RemoteAddress,
        tell: RemoteAddress,
    ) -> Self {
        let End { control, control_sent, bulk, bulk_sent, told } = end;
        // The first message rings: the peer may sleep already.
        told.word(ASLEEP).store(1, Ordering::Relaxed);
        Link {
            peer,
            incoming,
            front,
            control_sent,
            bulk,
            bulk_sent,
            told,
            is_collecting: AtomicBool::new(false),
            collecting: Arc::clone(collecting),
            sender: Mutex::new(Sender::new(Outlet::new(control, ring, tell))),
            transfers: Mutex::default(),
        }
    }

    /// Says that cells are collected from now on, or none any more. The caller has `sender` locked.
    pub(super) fn collects(&self, collects: bool) {
        self.is_collecting.store(collects, Ordering::Relaxed);
        if collects {
            self.collecting.begin();
        } else {
            self.collecting.end();
        }
    }

    /// Whether cells are collected, as far as the caller knows from the rank's count.
    #[inline]
    pub(super) fn is_collecting(&self) -> bool {
        self.is_collecting.load(Ordering::Relaxed)
    }

    /// Returns what the peer has told of the cells that were written to it.
    #[inline]
    pub(super) fn credits(&self) -> Credits {
        Credits::load(self.told.word(CREDITS))
    }

    /// Whether the peer sleeps, once: who is told rings. To be called after what the peer is to see
    /// was posted.
    #[inline]
    pub(super) fn is_to_ring(&self) -> bool {
        is_to_ring(self.told.word(ASLEEP))
    }

    /// Takes the completions of cells and the like: nobody waits for them, and only a failed one
    /// matters.
    pub(super) fn take_completions(&self) -> Result<(), Error> {
        if self.control_sent.is_empty() {
            return Ok(());
        }
        let mut completions = [Default::default(); 8];
        let count = self.control_sent.poll(&mut completions);
        completions[..count].iter().try_for_each(|completion| self.check(completion))
    }

    /// Has the channel told of the next completion of a read, or failure of anything.
    pub(super) fn arm(&self) -> Result<(), Error> {
        self.control_sent.request_notify(false)?;
        Ok(self.bulk_sent.request_notify(false)?)
    }

    /// **Errors**: the request of `completion` failed.
    pub(super) fn check(&self, completion: &ibverbs_sim::WorkCompletion) -> Result<(), Error> {
        match completion.status {
            ibverbs_sim::CompletionStatus::Success => Ok(()),
            status => {
                Err(Error::WorkRequest { peer: self.peer.into(), status: format!("{status:?}") })
            }
        }
    }
}
