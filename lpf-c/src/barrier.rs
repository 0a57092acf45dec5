//! Barrier of the processes of a team, at which each learns what all of them are about to do.
//!
//! A process arrives with a [`Purpose`] and with notes, and gets the notes of all. It spins, then yields, then
//! parks.

use talpf_primitives::{DIFFER, Parker, Unparker, yield_now};

/// Barrier at which threads park.
pub(crate) type Barrier = talpf_primitives::Barrier<Unparker>;

/// Reason for which a process comes to the barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// End of a superstep, or of a part of one.
    Sync = 0,
    /// Return from the program of the processes.
    Leave = 1,
    /// Start of a program in a fresh context.
    Rehook = 2,
}

/// Largest number of processes of a team.
pub(crate) const MOST_PARTIES: usize = Barrier::MOST_PARTIES;

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

/// Waits until all processes have arrived, and returns the notes of all. What each wrote before, all can read
/// afterwards.
#[inline]
pub(crate) fn pass(
    barrier: &Barrier,
    purpose: Purpose,
    notes: u8,
    patience: Patience,
    parker: &Parker,
) -> u8 {
    let open = barrier.open();
    let outcome = match barrier.arrive(open, purpose as u32, notes) {
        Some(outcome) => outcome,
        None => wait(barrier, open, patience, parker),
    };
    if outcome & DIFFER == 0 { outcome } else { outcome | note::FAILED }
}

#[inline]
fn wait(barrier: &Barrier, open: u64, patience: Patience, parker: &Parker) -> u8 {
    for _ in 0..patience.spins {
        if let Some(outcome) = barrier.outcome_of(open) {
            return outcome;
        }
        std::hint::spin_loop();
    }
    wait_slow(barrier, open, patience.yields, parker)
}

#[cold]
fn wait_slow(barrier: &Barrier, open: u64, yields: u32, parker: &Parker) -> u8 {
    for _ in 0..yields {
        if let Some(outcome) = barrier.outcome_of(open) {
            return outcome;
        }
        yield_now();
    }
    loop {
        if barrier.announce(open, parker.unparker().clone()) {
            parker.park();
        }
        // A token may be left from an earlier phase.
        if let Some(outcome) = barrier.outcome_of(open) {
            return outcome;
        }
    }
}

#[cfg(test)]
mod tests;
