//! The state word of a task: generation of its record and phase.
//!
//! Only the phases of async bodies are contended: the worker that polls moves `Scheduled` to
//! `Running` and on to `Suspended` or `Ended`; any thread that holds a waker moves `Suspended` to
//! `Scheduled`, and `Running` to `Notified` so that the worker polls once more. A waker of an
//! earlier generation changes nothing. Generations wrap around after 2^32 tasks of one record: a
//! waker that is kept for so long may wake another task, which then polls in vain.
//!
//! A waker that finds a poll still to come leaves the phase as it is, but writes it nevertheless,
//! and that poll begins with an exchange: so it sees everything that the waker's thread did before.

use talpf_primitives::{AtomicU64, Ordering};

/// The phase of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Phase {
    /// The record is unused.
    Free,
    /// Spawned and not yet started: pending or ready.
    Created,
    /// Woken and in a queue.
    Scheduled,
    /// A worker is in the body.
    Running,
    /// A worker is in the body, and a waker has asked for another poll.
    Notified,
    /// An async body waits to be woken.
    Suspended,
    /// The body has ended; guards or events may be open.
    Ended,
}

const PHASES: [Phase; 7] = [
    Phase::Free,
    Phase::Created,
    Phase::Scheduled,
    Phase::Running,
    Phase::Notified,
    Phase::Suspended,
    Phase::Ended,
];

/// Generation and phase in one word.
pub(crate) struct TaskState(AtomicU64);

impl TaskState {
    pub(crate) fn new() -> Self {
        TaskState(AtomicU64::new(word(0, Phase::Free)))
    }

    /// Returns the generation. **Ordering**: relaxed; the caller owns or has an open access of the
    /// task.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        (self.0.load(Ordering::Relaxed) >> 32) as u32
    }

    pub(crate) fn phase(&self) -> (u32, Phase) {
        let current = self.0.load(Ordering::Acquire);
        ((current >> 32) as u32, phase(current))
    }

    /// Begins the next generation; the caller owns the free record.
    #[inline]
    pub(crate) fn create(&self) -> u32 {
        let generation = self.generation().wrapping_add(1);
        self.0.store(word(generation, Phase::Created), Ordering::Release);
        generation
    }

    /// Sets the phase. Called by the one thread that runs, ends or frees the task.
    #[inline]
    pub(crate) fn set(&self, phase: Phase) {
        self.0.store(word(self.generation(), phase), Ordering::Release);
    }

    /// Begins a poll, the first or one that a waker asked for.
    #[inline]
    pub(crate) fn begin_poll(&self) {
        let running = word(self.generation(), Phase::Running);
        if self.phase().1 == Phase::Created {
            // No waker exists yet.
            self.0.store(running, Ordering::Release);
        } else {
            self.0.swap(running, Ordering::AcqRel);
        }
    }

    /// Ends a poll that was not the last. Returns `false` if the task was woken meanwhile: the
    /// caller schedules it again (the phase is `Scheduled` then).
    pub(crate) fn suspend(&self) -> bool {
        let generation = self.generation();
        let running = word(generation, Phase::Running);
        let suspended = word(generation, Phase::Suspended);
        let swapped =
            self.0.compare_exchange(running, suspended, Ordering::AcqRel, Ordering::Acquire);
        if swapped.is_err() {
            self.0.swap(word(generation, Phase::Scheduled), Ordering::AcqRel);
        }
        swapped.is_ok()
    }

    /// Wakes the task if it is of `generation`. Returns `true` if the caller has to schedule it.
    pub(crate) fn wake(&self, generation: u32) -> bool {
        let mut current = self.0.load(Ordering::Acquire);
        loop {
            if (current >> 32) as u32 != generation {
                return false;
            }
            let (next, schedule) = match phase(current) {
                Phase::Suspended => (Phase::Scheduled, true),
                Phase::Running => (Phase::Notified, false),
                before @ (Phase::Scheduled | Phase::Notified) => (before, false),
                Phase::Free | Phase::Created | Phase::Ended => return false,
            };
            match self.0.compare_exchange_weak(
                current,
                word(generation, next),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return schedule,
                Err(seen) => current = seen,
            }
        }
    }
}

fn phase(word: u64) -> Phase {
    PHASES[(word as u32 as usize).min(PHASES.len() - 1)]
}

const fn word(generation: u32, phase: Phase) -> u64 {
    (generation as u64) << 32 | phase as u64
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;
    use loom::thread;

    #[test]
    fn a_wake_up_during_a_poll_is_not_lost() {
        loom::model(|| {
            let state = Arc::new(TaskState::new());
            let generation = state.create();
            let ready = Arc::new(AtomicU32::new(0));
            let scheduled = Arc::new(AtomicU32::new(0));
            state.set(Phase::Running);
            let waker = {
                let (state, ready, scheduled) = (state.clone(), ready.clone(), scheduled.clone());
                thread::spawn(move || {
                    ready.store(1, Ordering::Relaxed);
                    if state.wake(generation) {
                        scheduled.fetch_add(1, Ordering::Relaxed);
                    }
                })
            };
            let seen = ready.load(Ordering::Relaxed);
            if seen == 0 && !state.suspend() {
                scheduled.fetch_add(1, Ordering::Relaxed);
            }
            waker.join().unwrap();
            if seen == 0 {
                assert_eq!(scheduled.load(Ordering::Relaxed), 1, "polled again exactly once");
            }
        });
    }

    /// Wakes a task twice, for two reasons: if its first poll does not see the second one, it is
    /// polled again.
    fn woken_again(phase: Phase) {
        loom::model(move || {
            let state = Arc::new(TaskState::new());
            let generation = state.create();
            let ready = Arc::new(AtomicU32::new(0));
            state.set(phase);
            let waker = {
                let (state, ready) = (state.clone(), ready.clone());
                thread::spawn(move || {
                    ready.store(1, Ordering::Relaxed);
                    state.wake(generation)
                })
            };
            if phase == Phase::Notified {
                assert!(!state.suspend());
            }
            state.begin_poll();
            let seen = ready.load(Ordering::Relaxed) == 1;
            let notified = !state.suspend();
            let scheduled = waker.join().unwrap();
            assert!(seen || notified || scheduled, "it is suspended and nobody polls it");
        });
    }

    #[test]
    fn a_wake_up_of_a_scheduled_task_is_not_lost() {
        woken_again(Phase::Scheduled);
    }

    #[test]
    fn a_wake_up_of_a_task_to_be_polled_once_more_is_not_lost() {
        woken_again(Phase::Notified);
    }

    #[test]
    fn a_stale_waker_changes_nothing() {
        loom::model(|| {
            let state = Arc::new(TaskState::new());
            let old = state.create();
            let waker = {
                let state = state.clone();
                thread::spawn(move || state.wake(old))
            };
            state.set(Phase::Free);
            let new = state.create();
            state.set(Phase::Running);
            assert!(!waker.join().unwrap());
            assert_eq!(state.phase(), (new, Phase::Running));
        });
    }
}
