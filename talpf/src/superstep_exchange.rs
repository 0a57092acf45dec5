//! Exchange of plain BSP between ranks that share memory.
//!
//! A rank hands the bytes of its short puts over in batches, one for each slot of a target, and then comes to a
//! barrier. Once all have come, each rank takes the batches for itself, and writes them into its own slots
//! (`bsp`). So a superstep of short puts is one phase of the barrier, and no rank writes to the memory of another.
//! A rank notes at the barrier that it needs rounds, for gets and long puts; then all of them make rounds.
//!
//! A rank has one sync under way at a time; others queue up behind it. One that was dropped may leave the rank in a
//! phase that is open, for whose end the next sync waits. A batch says which phase it is of, as a sync that was
//! dropped leaves batches which nobody takes.

use std::fmt::Write;
use std::task::Waker;

use crossbeam_utils::CachePadded;
use futures::lock::{Mutex as TaskMutex, MutexGuard as TaskMutexGuard};
use smallvec::SmallVec;
use talpf_primitives::{AtomicU64, Barrier, Mutex, Ordering};

use crate::numbers::Rank;

/// Note of a rank that needs rounds.
const ROUNDS: u8 = 1;

/// Exchange of the ranks of a run.
pub(crate) struct SuperstepExchange {
    barrier: Barrier<Waker>,
    members: Box<[Member]>,
}

/// Part of a rank.
struct Member {
    /// Held by the sync that is under way.
    sync: CachePadded<TaskMutex<()>>,
    /// Number of the phase after the last one that the rank has come to. Not on the cache line of the batches, which
    /// peers change.
    next: CachePadded<AtomicU64>,
    /// Batches for the rank. The first one lies beside the lock.
    batches: CachePadded<Mutex<PutBatches>>,
}

/// Short puts of one superstep to one slot of one rank.
pub(crate) struct PutBatch {
    phase: u64,
    /// Number of the slot.
    pub(crate) slot: u32,
    pub(crate) pieces: SmallVec<[PutPiece; 1]>,
    /// Bytes of all pieces, one after the other.
    pub(crate) bytes: SmallVec<[u8; 16]>,
}

/// Elements that follow each other in a slot.
#[derive(Clone, Copy)]
pub(crate) struct PutPiece {
    /// Numbers of the first element and of the one after the last.
    pub(crate) index: u64,
    pub(crate) end: u64,
}

/// Batches for one rank, usually one.
pub(crate) type PutBatches = SmallVec<[PutBatch; 1]>;

impl PutBatch {
    pub(crate) fn new(slot: u32) -> Self {
        PutBatch { phase: 0, slot, pieces: SmallVec::new(), bytes: SmallVec::new() }
    }

    /// Adds the elements from `index` to `end`, whose bytes these are.
    #[inline]
    pub(crate) fn add(&mut self, index: u64, end: u64, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        match self.pieces.last_mut() {
            Some(last) if last.end == index => last.end = end,
            _ => self.pieces.push(PutPiece { index, end }),
        }
    }
}

impl SuperstepExchange {
    /// Makes the exchange of `ranks`, of which a run has fewer than a barrier may have.
    pub(crate) fn new(ranks: u32) -> Self {
        let member = || Member {
            sync: CachePadded::new(TaskMutex::new(())),
            next: CachePadded::new(AtomicU64::new(0)),
            batches: CachePadded::new(Mutex::new(PutBatches::new())),
        };
        let members = (0..ranks).map(|_| member()).collect();
        SuperstepExchange { barrier: Barrier::new(ranks as usize), members }
    }

    /// Waits for the syncs of a rank that are under way. The next one goes on once the guard is dropped.
    #[inline]
    pub(crate) async fn begin_sync(&self, rank: Rank) -> TaskMutexGuard<'_, ()> {
        self.members[rank.index()].sync.lock().await
    }

    /// Returns the open phase for a rank, which then arrives.
    ///
    /// **Errors**: the number of the open phase, if the rank has come to it already.
    #[inline]
    pub(crate) fn open_phase(&self, rank: Rank) -> Result<u64, u64> {
        let open = self.barrier.open();
        let has_come = self.members[rank.index()].next.load(Ordering::Relaxed) > open;
        if has_come { Err(open) } else { Ok(open) }
    }

    /// Hands the batches of a rank over to their targets, and arrives in its open phase. All ranks make rounds
    /// after a phase to which one has come that needs them.
    pub(crate) fn arrive(
        &self,
        rank: Rank,
        phase: u64,
        batches: impl Iterator<Item = (Rank, PutBatch)>,
        needs_rounds: bool,
    ) {
        self.members[rank.index()].next.store(phase + 1, Ordering::Relaxed);
        for (target, batch) in batches {
            self.members[target.index()].batches.lock().push(PutBatch { phase, ..batch });
        }
        let notes = if needs_rounds { ROUNDS } else { 0 };
        let _ = self.barrier.arrive(phase, 0, notes);
    }

    /// Returns `true` if the ranks make rounds, once all have come to a phase.
    #[inline]
    pub(crate) fn makes_rounds(&self, phase: u64) -> Option<bool> {
        self.barrier.outcome_of(phase).map(|notes| notes & ROUNDS != 0)
    }

    /// Registers a waker to be called at the end of a phase, or at a failure. The caller checks both once more.
    pub(crate) fn wake_at_end(&self, phase: u64, waker: Waker) {
        self.barrier.announce(phase, waker);
    }

    /// Wakes all that wait, as the run has failed or ended.
    #[cold]
    pub(crate) fn wake_all(&self) {
        self.barrier.wake_all();
    }

    /// Takes the batches for a rank out of a phase that has ended.
    pub(crate) fn take(&self, rank: Rank, phase: u64) -> PutBatches {
        let mut batches = self.members[rank.index()].batches.lock();
        if batches.iter().all(|batch| batch.phase == phase) {
            return std::mem::take(&mut *batches);
        }
        let mut taken = PutBatches::new();
        // A fast rank may have handed over those of the next phase, and of a phase before nobody takes any.
        let mut index = 0;
        while index < batches.len() {
            match batches[index].phase {
                of if of > phase => index += 1,
                of => {
                    let batch = batches.remove(index);
                    taken.extend((of == phase).then_some(batch));
                }
            }
        }
        taken
    }

    /// Describes what a rank waits for, if it has come to the open phase.
    pub(crate) fn describe(&self, rank: Rank, text: &mut String) {
        let open = self.barrier.open();
        let has_come = |member: &Member| member.next.load(Ordering::Relaxed) > open;
        if !has_come(&self.members[rank.index()]) {
            return;
        }
        let absent = self.members.iter().enumerate().filter(|(_, member)| !has_come(member));
        let absent: Vec<String> = absent.map(|(rank, _)| Rank(rank as u32).to_string()).collect();
        if absent.is_empty() {
            return;
        }
        let have = if absent.len() == 1 { "has" } else { "have" };
        let absent = absent.join(", ");
        let _ =
            writeln!(text, "  {rank}: waits to end superstep {open}, {absent} {have} not ended it");
    }
}
