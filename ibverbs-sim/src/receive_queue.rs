//! Receive queues, of one queue pair or shared.
//!
//! The owner posts, peers take; both through the ring, without a lock. The first piece of a scatter
//! list is in the ring's slot, the others are beside it under the slot's index.
//!
//! A sender that finds no receive lists itself in `waiters`, sets `waiting` and checks the ring
//! again; the owner posts and then checks `waiting`. Each side has a full fence between its two
//! steps, so one of them sees the other: no sender sleeps on a queue with a receive.

use std::{
    num::NonZeroU32,
    sync::{Arc, Weak},
};

use talpf_primitives::{AtomicBool, AtomicU64, Mutex, Ordering, fence};

use crate::{
    Error, LocalKey, PostError, ReceiveWorkRequest, ScatterGather,
    attributes::{MAX_SGE, within},
    deferred::Deferred,
    queue_pair::QueuePairCore,
    ring::Ring,
};

pub(crate) struct ReceiveQueue {
    ring: Ring<ReceiveEntry>,
    /// Pieces after the first: `max_sge - 1` for each slot.
    further: Box<[FurtherPiece]>,
    max_sge: usize,
    /// The protection domain of the pieces.
    pub(crate) domain: NonZeroU32,
    waiting: AtomicBool,
    waiters: Mutex<Vec<Weak<QueuePairCore>>>,
}

/// 28 bytes, so that two slots of the ring fit a cache line.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct ReceiveEntry {
    wr_id: u64,
    address: u64,
    length: u32,
    key: u32,
    pieces: u32,
}

/// A piece after the first. The poster writes it before its slot is published, and the taker reads
/// it before the slot is free.
#[derive(Default)]
struct FurtherPiece {
    address: AtomicU64,
    length_and_key: AtomicU64,
}

/// A receive that a peer has taken.
#[derive(Default)]
pub(crate) struct Receive {
    pub(crate) wr_id: u64,
    pieces: [ScatterGather; MAX_SGE],
    count: usize,
}

impl Receive {
    pub(crate) fn scatter(&self) -> &[ScatterGather] {
        &self.pieces[..self.count]
    }
}

impl ReceiveQueue {
    pub(crate) fn new(max_wr: u32, max_sge: u32, domain: NonZeroU32) -> Self {
        let ring = Ring::new(max_wr);
        let further = ring.capacity() * max_sge.saturating_sub(1);
        Self {
            further: (0..further).map(|_| FurtherPiece::default()).collect(),
            max_sge: max_sge as usize,
            domain,
            waiting: AtomicBool::new(false),
            waiters: Mutex::new(Vec::new()),
            ring,
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.ring.capacity()
    }

    /// Adds receives, and resumes senders that wait for one.
    pub(crate) fn post(
        &self,
        requests: &[ReceiveWorkRequest<'_>],
        deferred: &mut Deferred,
    ) -> Result<(), PostError> {
        let refused = requests.iter().position(|request| request.scatter.len() > self.max_sge);
        let fitting = refused.unwrap_or(requests.len());
        let posted = self.ring.push_many(fitting, |nth, slot| self.entry(&requests[nth], slot));
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) {
            self.resume_waiters(deferred);
        }
        let full = || Error::QueueFull { capacity: self.capacity() };
        match requests.get(posted) {
            None => Ok(()),
            Some(_) if posted < fitting => Err(PostError { index: posted, reason: full() }),
            Some(request) => {
                let length = request.scatter.len() as u64;
                let too_long = within("max_sge", length, self.max_sge as u64);
                Err(PostError { index: posted, reason: too_long.err().unwrap_or_else(full) })
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Takes the next receive without its scatter list.
    #[inline]
    pub(crate) fn take_id(&self) -> Option<u64> {
        self.ring.pop(|_, entry| entry.wr_id)
    }

    /// Takes the next receive into `receive`, where its list is not copied once more. Returns `false`
    /// if there is none.
    #[inline]
    pub(crate) fn take(&self, receive: &mut Receive) -> bool {
        let taken = self.ring.pop(|slot, entry| {
            (receive.wr_id, receive.count) = (entry.wr_id, entry.pieces as usize);
            let key = LocalKey(entry.key);
            let pieces = &mut receive.pieces;
            pieces[0] = ScatterGather { address: entry.address, length: entry.length, key };
            for (piece, kept) in pieces[1..].iter_mut().zip(self.further(slot, receive.count)) {
                *piece = kept.load();
            }
        });
        taken.is_some()
    }

    /// Lists `sender` to be resumed by the next post. The caller must check for a receive again.
    #[cold]
    pub(crate) fn wait(&self, sender: &Weak<QueuePairCore>) {
        let mut waiters = self.waiters.lock();
        if !waiters.iter().any(|waiter| waiter.ptr_eq(sender)) {
            waiters.push(Weak::clone(sender));
        }
        self.waiting.store(true, Ordering::Relaxed);
        drop(waiters);
        fence(Ordering::SeqCst);
    }

    #[cold]
    fn resume_waiters(&self, deferred: &mut Deferred) {
        let waiters = {
            let mut waiters = self.waiters.lock();
            self.waiting.store(false, Ordering::Relaxed);
            std::mem::take(&mut *waiters)
        };
        for sender in waiters.iter().filter_map(Weak::upgrade) {
            Arc::clone(&sender).receive_posted(deferred);
        }
    }

    fn entry(&self, request: &ReceiveWorkRequest<'_>, slot: usize) -> ReceiveEntry {
        let first = match request.scatter {
            [only] => *only,
            [] => ScatterGather::default(),
            [first, further @ ..] => {
                for (kept, piece) in self.further(slot, request.scatter.len()).iter().zip(further) {
                    kept.store(piece);
                }
                *first
            }
        };
        ReceiveEntry {
            wr_id: request.wr_id,
            address: first.address,
            length: first.length,
            key: first.key.0,
            pieces: request.scatter.len() as u32,
        }
    }

    /// Returns the storage of all but the first of a slot's `count` pieces.
    fn further(&self, slot: usize, count: usize) -> &[FurtherPiece] {
        let start = slot * self.max_sge.saturating_sub(1);
        &self.further[start..start + count.saturating_sub(1)]
    }
}

impl FurtherPiece {
    fn store(&self, piece: &ScatterGather) {
        let length_and_key = u64::from(piece.length) << 32 | u64::from(piece.key.0);
        self.address.store(piece.address, Ordering::Relaxed);
        self.length_and_key.store(length_and_key, Ordering::Relaxed);
    }

    fn load(&self) -> ScatterGather {
        let length_and_key = self.length_and_key.load(Ordering::Relaxed);
        ScatterGather {
            address: self.address.load(Ordering::Relaxed),
            length: (length_and_key >> 32) as u32,
            key: LocalKey(length_and_key as u32),
        }
    }
}
