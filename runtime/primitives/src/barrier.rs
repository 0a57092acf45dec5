//! Barrier at which each party learns what all of them are about to do.
//!
//! A party arrives with a kind and with notes. The last one to arrive opens the next phase, and leaves the outcome
//! of this one in the word of the phase, which the others poll: the notes of all of them, and whether all came with
//! one kind. So a phase costs one read-modify-write and one cache line of each party, and nobody reads the notes of
//! the others one by one.
//!
//! A party that has polled in vain sleeps. It announces itself, fences, and checks the phase once more; the last
//! one to arrive opens the phase, fences, and reads the number of announcements. One of the two sees what the other
//! has written. Whoever opens a phase may be slow, and find announcements for the next one: these stay.

use std::task::Waker;

use crossbeam_utils::CachePadded;

use crate::{AtomicU32, AtomicU64, Mutex, Ordering, Unparker, fence};

/// Note of a phase to which parties have come with different kinds.
pub const DIFFER: u8 = 1 << 7;

/// Bits of a count of arrivals.
const COUNT_BITS: u32 = 20;

/// Barrier with an outcome, for parties that sleep as `S`.
pub struct Barrier<S> {
    parties: u64,
    /// Arrivals in the open phase, in all and of the kinds 1 and 2. The last one sets it to zero.
    arrived: CachePadded<AtomicU64>,
    /// Notes in the open phase, if there are any.
    notes: CachePadded<AtomicU32>,
    /// Number of the open phase, and in the lowest byte the outcome of the one before.
    phase: CachePadded<AtomicU64>,
    /// Number of entries of `asleep`.
    sleepers: AtomicU32,
    /// Parties that sleep, each with the phase for whose end it waits.
    asleep: Mutex<Vec<(u64, S)>>,
}

/// Way to wake a party that sleeps.
pub trait Sleeper {
    /// Wakes the party, which checks the phase.
    fn wake(self);
}

impl Sleeper for Unparker {
    fn wake(self) {
        self.unpark();
    }
}

impl Sleeper for Waker {
    fn wake(self) {
        Waker::wake(self);
    }
}

impl<S: Sleeper> Barrier<S> {
    /// Largest number of parties.
    pub const MOST_PARTIES: usize = (1 << COUNT_BITS) - 1;

    /// Makes a barrier of so many parties.
    ///
    /// **Panics**: no party, or more than [`Barrier::MOST_PARTIES`].
    pub fn new(parties: usize) -> Self {
        assert!((1..=Self::MOST_PARTIES).contains(&parties), "{parties} parties");
        Barrier {
            parties: parties as u64,
            arrived: CachePadded::new(AtomicU64::new(0)),
            notes: CachePadded::new(AtomicU32::new(0)),
            phase: CachePadded::new(AtomicU64::new(0)),
            sleepers: AtomicU32::new(0),
            asleep: Mutex::new(Vec::new()),
        }
    }

    /// Returns the number of the open phase, which stays open until each party has arrived.
    #[inline]
    pub fn open(&self) -> u64 {
        self.phase.load(Ordering::Acquire) >> 8
    }

    /// Arrives in phase `open`, the open one, with a kind of 0 to 2, and notes other than [`DIFFER`]. Returns the
    /// outcome of the phase if this party is the last one. What each party wrote before, all can read once the
    /// phase has ended.
    #[inline]
    pub fn arrive(&self, open: u64, kind: u32, notes: u8) -> Option<u8> {
        debug_assert!(kind <= 2 && notes & DIFFER == 0, "kind {kind}, notes {notes}");
        if notes != 0 {
            self.notes.fetch_or(u32::from(notes), Ordering::Relaxed);
        }
        let unit = if kind == 0 { 1 } else { 1 | 1 << (kind * COUNT_BITS) };
        let arrived = self.arrived.fetch_add(unit, Ordering::AcqRel) + unit;
        (count(arrived, 0) == self.parties).then(|| self.open_next(open, arrived))
    }

    /// Ends phase `open`, in which all have arrived, and wakes those that sleep.
    fn open_next(&self, open: u64, arrived: u64) -> u8 {
        let mut outcome = self.notes.load(Ordering::Relaxed) as u8;
        if outcome != 0 {
            self.notes.store(0, Ordering::Relaxed);
        }
        let same = |others: u64| others == 0 || others == self.parties;
        if !(same(count(arrived, 1)) && same(count(arrived, 2))) {
            outcome |= DIFFER;
        }
        self.arrived.store(0, Ordering::Relaxed);
        self.phase.store((open + 1) << 8 | u64::from(outcome), Ordering::Release);
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake_those_until(open);
        }
        outcome
    }

    /// Wakes all parties that sleep.
    pub fn wake_all(&self) {
        self.wake_those_until(u64::MAX);
    }

    /// Wakes the parties that sleep until the end of a phase up to `last`.
    #[cold]
    fn wake_those_until(&self, last: u64) {
        let mut asleep = self.asleep.lock();
        let mut woken = std::mem::take(&mut *asleep);
        asleep.extend(woken.extract_if(.., |(open, _)| *open > last));
        self.sleepers.store(asleep.len() as u32, Ordering::Relaxed);
        // A waker may be code of the program.
        drop(asleep);
        woken.drain(..).for_each(|(_, sleeper)| sleeper.wake());
        let mut asleep = self.asleep.lock();
        if asleep.capacity() == 0 {
            *asleep = woken;
        }
    }

    /// Returns the outcome of phase `open`, in which the caller has arrived, if it has ended. It stays until the
    /// caller arrives once more.
    #[inline]
    pub fn outcome_of(&self, open: u64) -> Option<u8> {
        let word = self.phase.load(Ordering::Acquire);
        (word >> 8 != open).then_some(word as u8)
    }

    /// Announces a party that is about to sleep until phase `open` has ended. Returns `false` if it has. The party is
    /// woken once, after the phase has ended or by [`Barrier::wake_all`].
    pub fn announce(&self, open: u64, sleeper: S) -> bool {
        let mut asleep = self.asleep.lock();
        asleep.push((open, sleeper));
        self.sleepers.store(asleep.len() as u32, Ordering::Relaxed);
        drop(asleep);
        fence(Ordering::SeqCst);
        self.outcome_of(open).is_none()
    }
}

/// Returns one of the three counts of arrivals.
fn count(arrived: u64, which: u32) -> u64 {
    arrived >> (which * COUNT_BITS) & ((1 << COUNT_BITS) - 1)
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_party_gets_the_notes_of_all_and_the_others_find_them() {
        let barrier = Barrier::<Waker>::new(2);
        for open in 0..3 {
            assert_eq!(barrier.open(), open);
            assert_eq!(barrier.arrive(open, 0, 2), None);
            assert_eq!(barrier.outcome_of(open), None);
            assert_eq!(barrier.arrive(open, 0, 4), Some(6));
            assert_eq!(barrier.outcome_of(open), Some(6));
        }
        assert_eq!(barrier.arrive(3, 0, 0), None);
        assert_eq!(barrier.arrive(3, 0, 0), Some(0), "notes are of one phase");
    }

    #[test]
    fn kinds_that_differ_are_known_to_all() {
        let barrier = Barrier::<Waker>::new(3);
        for (kinds, expected) in [([1, 1, 1], 0), ([0, 0, 2], DIFFER), ([1, 2, 1], DIFFER)] {
            let open = barrier.open();
            let last = kinds.map(|kind| barrier.arrive(open, kind, 0))[2];
            assert_eq!((last, barrier.outcome_of(open)), (Some(expected), Some(expected)));
        }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use std::task::Wake;

    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::AtomicBool;

    /// A task that sleeps until a phase ends.
    struct Task {
        barrier: Arc<Barrier<Waker>>,
        open: u64,
        /// `true` once it was woken after the end of the phase.
        is_woken: AtomicBool,
    }

    impl Wake for Task {
        fn wake(self: std::sync::Arc<Self>) {
            if self.barrier.outcome_of(self.open).is_some() {
                self.is_woken.store(true, Ordering::Release);
            }
        }
    }

    /// Arrives in a phase, and sleeps unless it has ended. Returns the task if it sleeps.
    fn come(barrier: &Arc<Barrier<Waker>>, open: u64) -> Option<std::sync::Arc<Task>> {
        let is_last = barrier.arrive(open, 0, 4).is_some();
        let is_woken = AtomicBool::new(false);
        let task = std::sync::Arc::new(Task { barrier: Arc::clone(barrier), open, is_woken });
        let sleeps = !is_last && barrier.announce(open, Waker::from(std::sync::Arc::clone(&task)));
        sleeps.then_some(task)
    }

    /// Checks that a phase has ended, and that whoever slept was woken by that.
    fn check_end(barrier: &Barrier<Waker>, open: u64, task: Option<&Task>) {
        assert_eq!(barrier.outcome_of(open), Some(4));
        let is_woken = task.is_none_or(|task| task.is_woken.load(Ordering::Acquire));
        assert!(is_woken, "nobody woke the party after phase {open}");
        // One that announced itself and did not sleep holds the barrier.
        barrier.wake_all();
    }

    #[test]
    fn loom_a_party_that_sleeps_is_woken_or_sees_the_next_phase() {
        loom::model(|| {
            let barrier = Arc::new(Barrier::<Waker>::new(2));
            let other = Arc::clone(&barrier);
            let arrives = thread::spawn(move || {
                let _ = other.arrive(0, 0, 4);
            });
            let task = come(&barrier, 0);
            arrives.join().unwrap();
            check_end(&barrier, 0, task.as_deref());
        });
    }

    #[test]
    fn loom_whoever_opens_a_phase_late_leaves_those_asleep_that_wait_for_the_next_one() {
        loom::model(|| {
            let barrier = Arc::new(Barrier::<Waker>::new(2));
            let other = Arc::clone(&barrier);
            let arrives = thread::spawn(move || {
                let _ = other.arrive(0, 0, 4);
                while other.outcome_of(0).is_none() {
                    thread::yield_now();
                }
                let _ = other.arrive(1, 0, 4);
            });
            let _ = come(&barrier, 0);
            while barrier.outcome_of(0).is_none() {
                thread::yield_now();
            }
            let task = come(&barrier, 1);
            arrives.join().unwrap();
            check_end(&barrier, 1, task.as_deref());
        });
    }
}
