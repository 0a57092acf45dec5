//! What a rank has for one peer: the queue pairs, where the peer's ring is, and both directions'
//! state.

use std::sync::atomic::{AtomicU32, Ordering, fence};

use ibverbs_sim::{
    CompletionQueue, Operation, Payload, QueuePair, RemoteAddress, SendFlags, SendWorkRequest,
};
use parking_lot::Mutex;

use super::cell::CELL;
use super::ring::Lines;
use super::sender::Sender;
use super::transfers::Transfers;
use crate::error::Error;
use crate::rank::WorldRank;

/// Requests that a queue pair for cells holds. A full ring and its bytes are fewer.
pub(super) const SENDS: u32 = 4096;
/// Every so many requests without completion one asks for it, so that send slots come back.
const SIGNAL_EVERY: u32 = 64;
/// Most bytes of a request that carries them itself.
pub(super) const CHUNK: usize = 512;
/// Requests posted at once.
pub(super) const BATCH: usize = 18;
/// The words of the line that the peer writes: what it has taken, and whether it sleeps.
const CREDITS: usize = 0;
const ASLEEP: usize = 1;

/// See the module text.
pub(super) struct Link {
    pub(super) peer: WorldRank,
    /// The number of the ring that is kept here for the peer.
    pub(super) incoming: usize,
    control: QueuePair,
    control_sent: CompletionQueue,
    pub(super) bulk: QueuePair,
    pub(super) bulk_sent: CompletionQueue,
    /// The peer's ring for us.
    ring: RemoteAddress,
    /// What the peer tells us.
    told: Lines,
    /// Where we tell the peer.
    tell: RemoteAddress,
    posted: AtomicU32,
    pub(super) sender: Mutex<Sender>,
    pub(super) transfers: Mutex<Transfers>,
}

/// One end of a link, before it knows the other.
pub(super) struct End {
    pub(super) control: QueuePair,
    pub(super) control_sent: CompletionQueue,
    pub(super) bulk: QueuePair,
    pub(super) bulk_sent: CompletionQueue,
    pub(super) told: Lines,
}

impl Link {
    /// `ring` and `tell` are at the peer.
    pub(super) fn new(
        (peer, incoming): (WorldRank, usize),
        end: End,
        ring: RemoteAddress,
        tell: RemoteAddress,
    ) -> Self {
        let End { control, control_sent, bulk, bulk_sent, told } = end;
        // The first message rings: the peer may sleep already.
        told.word(0, ASLEEP).store(1, Ordering::Relaxed);
        Link {
            peer,
            incoming,
            control,
            control_sent,
            bulk,
            bulk_sent,
            ring,
            told,
            tell,
            posted: AtomicU32::new(0),
            sender: Mutex::default(),
            transfers: Mutex::default(),
        }
    }

    /// Cells that the peer has taken, and cells of eager messages that it has matched, both
    /// wrapping.
    #[inline]
    pub(super) fn credits(&self) -> (u32, u32) {
        let word = self.told.word(0, CREDITS).load(Ordering::Acquire);
        (word as u32, (word >> 32) as u32)
    }

    /// A byte of cell `cell` of the peer's ring.
    #[inline]
    pub(super) fn ring_at(&self, cell: usize) -> Operation {
        let address = self.ring.address.wrapping_add((cell * CELL) as u64);
        Operation::Write { remote: RemoteAddress { address, key: self.ring.key } }
    }

    /// Tells the peer what was taken here.
    pub(super) fn tell_credits(&self, taken: u64, released: u64) -> Result<(), Error> {
        let word = u64::from(taken as u32) | u64::from(released as u32) << 32;
        self.tell(CREDITS, word)?;
        self.wake()
    }

    /// Tells the peer whether to ring when it writes.
    pub(super) fn tell_asleep(&self, asleep: bool) -> Result<(), Error> {
        self.tell(ASLEEP, u64::from(asleep))
    }

    fn tell(&self, word: usize, value: u64) -> Result<(), Error> {
        let address = self.tell.address.wrapping_add(word as u64 * 8);
        let remote = RemoteAddress { address, key: self.tell.key };
        let bytes = value.to_ne_bytes();
        self.post(&mut [inline(Operation::Write { remote }, &bytes)])
    }

    /// Posts requests that carry their bytes.
    #[inline]
    pub(super) fn post(&self, requests: &mut [SendWorkRequest<'_>]) -> Result<(), Error> {
        let count = requests.len() as u32;
        let before = self.posted.fetch_add(count, Ordering::Relaxed);
        if before / SIGNAL_EVERY != before.wrapping_add(count) / SIGNAL_EVERY {
            if let Some(last) = requests.last_mut() {
                last.flags = SendFlags::SIGNALLED;
            }
            self.take_completions()?;
        }
        self.control.post_send(requests).map_err(|error| Error::Device(error.reason))
    }

    /// Rings if the peer sleeps. To be called after what it is to see was posted.
    ///
    /// **Ordering**: the peer says that it sleeps before it looks for the last time; either this
    /// sees the one or the peer sees what was posted.
    #[inline]
    pub(super) fn wake(&self) -> Result<(), Error> {
        fence(Ordering::SeqCst);
        let asleep = self.told.word(0, ASLEEP);
        if asleep.load(Ordering::Relaxed) != 0 && asleep.swap(0, Ordering::SeqCst) != 0 {
            return self.ring();
        }
        Ok(())
    }

    #[cold]
    fn ring(&self) -> Result<(), Error> {
        self.post(&mut [inline(Operation::Send, &[])])
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

/// A request that carries its bytes.
#[inline]
pub(super) fn inline(operation: Operation, bytes: &[u8]) -> SendWorkRequest<'_> {
    let payload = Payload::Inline(bytes);
    SendWorkRequest { wr_id: 0, operation, payload, flags: SendFlags::NONE }
}
