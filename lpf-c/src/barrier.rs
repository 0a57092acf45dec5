//! Barrier of the processes of a team, at which each learns what all of them are about to do.
//!
//! A process arrives with a [`Purpose`] and with notes. The last one to arrive opens the next phase, and leaves
//! the outcome of this one in the word of the phase, on which the others spin: whether all came for the same
//! purpose, and the notes of all of them. So a superstep costs one read-modify-write and one cache line of each
//! process, and nobody reads the notes of the others one by one.
//!
//! A process that has spun and yielded in vain parks. It announces itself, fences, and checks the phase once
//! more; the last one to arrive opens the phase, fences, and reads the number of announcements. One of the two
//! sees what the other has written.

use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicU32, AtomicU64, Mutex, Ordering, Parker, Unparker, fence, yield_now};

/// Reason for which a process comes to the barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// End of a superstep, or of a part of one.
    Sync,
    /// Return from the program of the processes.
    Leave,
    /// Start of a program in a fresh context.
    Rehook,
}

/// Bits of a count of arrivals.
const COUNT_BITS: u32 = 20;

/// Largest number of processes of a team.
pub(crate) const MOST_PARTIES: usize = (1 << COUNT_BITS) - 1;

impl Purpose {
    /// Returns an arrival with this purpose: one in the lowest count, and one in that of the purpose.
    fn unit(self) -> u64 {
        match self {
            Purpose::Sync => 1,
            Purpose::Leave => 1 | 1 << COUNT_BITS,
            Purpose::Rehook => 1 | 1 << (2 * COUNT_BITS),
        }
    }
}

/// Notes of processes that arrive, as bits of a byte; the outcome of a phase has those of all.
pub(crate) mod note {
    /// Somebody gets.
    pub(crate) const GETS: u8 = 1;
    /// Somebody puts more than a message carries itself.
    pub(crate) const LONG_PUTS: u8 = 2;
    /// Somebody has a new queue or register.
    pub(crate) const RESIZE: u8 = 4;
    /// Somebody has registered or deregistered a global slot.
    pub(crate) const REGISTERED: u8 = 8;
    /// Somebody has failed, or purposes differ.
    pub(crate) const FAILED: u8 = 16;
}

/// Number of polls before a process parks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Polls with a pause between them.
    pub(crate) spins: u32,
    /// Polls with a yield between them.
    pub(crate) yields: u32,
}

impl Patience {
    /// Returns the patience of `processes` on as many `cores`: a core that others need is yielded at once.
    pub(crate) fn of(processes: usize, cores: usize) -> Self {
        match processes <= cores {
            true => Patience { spins: 2000, yields: 50 },
            false => Patience { spins: 0, yields: 200 },
        }
    }
}

/// Barrier with an outcome.
pub(crate) struct Barrier {
    parties: u64,
    /// Arrivals in the open phase, by purpose. The last one sets it to zero.
    arrived: CachePadded<AtomicU64>,
    /// Notes in the open phase, if there are any.
    notes: CachePadded<AtomicU32>,
    /// Number of the open phase, and in the lowest byte the outcome of the one before.
    phase: CachePadded<AtomicU64>,
    /// Number of threads in `parked`.
    sleepers: AtomicU32,
    parked: Mutex<Vec<Unparker>>,
}

impl Barrier {
    /// Makes a barrier of so many parties, at most [`MOST_PARTIES`].
    pub(crate) fn new(parties: usize) -> Self {
        assert!((1..=MOST_PARTIES).contains(&parties), "{parties} parties");
        Barrier {
            parties: parties as u64,
            arrived: CachePadded::new(AtomicU64::new(0)),
            notes: CachePadded::new(AtomicU32::new(0)),
            phase: CachePadded::new(AtomicU64::new(0)),
            sleepers: AtomicU32::new(0),
            parked: Mutex::new(Vec::new()),
        }
    }

    /// Waits until all parties have arrived, and returns the notes of all. What each wrote before, all can read
    /// afterwards.
    #[inline]
    pub(crate) fn pass(
        &self,
        purpose: Purpose,
        notes: u8,
        patience: Patience,
        parker: &Parker,
    ) -> u8 {
        // The phase stays open until this party has arrived.
        let open = self.phase.load(Ordering::Relaxed) >> 8;
        if notes != 0 {
            self.notes.fetch_or(u32::from(notes), Ordering::Relaxed);
        }
        let arrived = self.arrived.fetch_add(purpose.unit(), Ordering::AcqRel) + purpose.unit();
        if count(arrived, 0) == self.parties {
            return self.open_next(open, arrived);
        }
        for _ in 0..patience.spins {
            if let Some(outcome) = self.outcome_of(open) {
                return outcome;
            }
            std::hint::spin_loop();
        }
        self.wait(open, patience.yields, parker)
    }

    /// Ends phase `open`, at which all have arrived, and wakes those that have parked.
    fn open_next(&self, open: u64, arrived: u64) -> u8 {
        let mut outcome = self.notes.load(Ordering::Relaxed) as u8;
        if outcome != 0 {
            self.notes.store(0, Ordering::Relaxed);
        }
        let same = |others: u64| others == 0 || others == self.parties;
        if !(same(count(arrived, 1)) && same(count(arrived, 2))) {
            outcome |= note::FAILED;
        }
        self.arrived.store(0, Ordering::Relaxed);
        self.phase.store((open + 1) << 8 | u64::from(outcome), Ordering::Release);
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake();
        }
        outcome
    }

    #[cold]
    fn wake(&self) {
        let mut parked = self.parked.lock();
        self.sleepers.store(0, Ordering::Relaxed);
        parked.drain(..).for_each(|sleeper| sleeper.unpark());
    }

    /// Returns the outcome of phase `open`, if it has ended.
    #[inline]
    fn outcome_of(&self, open: u64) -> Option<u8> {
        let word = self.phase.load(Ordering::Acquire);
        (word >> 8 != open).then_some(word as u8)
    }

    #[cold]
    fn wait(&self, open: u64, yields: u32, parker: &Parker) -> u8 {
        for _ in 0..yields {
            if let Some(outcome) = self.outcome_of(open) {
                return outcome;
            }
            yield_now();
        }
        loop {
            if self.announce(open, parker.unparker().clone()) {
                parker.park();
            }
            // A token may be left from an earlier phase.
            if let Some(outcome) = self.outcome_of(open) {
                return outcome;
            }
        }
    }

    /// Announces a thread that is about to park until phase `open` has ended. Returns `false` if it has.
    fn announce(&self, open: u64, sleeper: Unparker) -> bool {
        let mut parked = self.parked.lock();
        parked.push(sleeper);
        self.sleepers.store(parked.len() as u32, Ordering::Relaxed);
        drop(parked);
        fence(Ordering::SeqCst);
        self.outcome_of(open).is_none()
    }
}

/// Returns one of the three counts of arrivals.
fn count(arrived: u64, which: u32) -> u64 {
    arrived >> (which * COUNT_BITS) & MOST_PARTIES as u64
}

#[cfg(test)]
mod tests;
