//! Counters that move a task on: the thread that takes the last unit takes the next step.

use talpf_primitives::{AtomicU32, Ordering};

use crate::error::Error;

/// Largest number of units that a counter takes from the program. Together with the edges that
/// there is room for, and one of each thread that is just refused, they stay below the bias of a
/// spawn, which reports recognise.
pub(crate) const MOST: u32 = 1 << 28;
/// A bias that keeps a count above zero while edges are being linked; it stays if there are none.
pub(crate) const SPAWNING: u32 = 1 << 30;

/// Units that a step of a task waits for: edges before it may run, or its body, guards and events
/// before it is complete.
pub(crate) struct EventCounter(AtomicU32);

impl EventCounter {
    pub(crate) fn new() -> Self {
        EventCounter(AtomicU32::new(0))
    }

    /// Sets the units of a task that only the caller knows.
    #[inline]
    pub(crate) fn set(&self, units: u32) {
        self.0.store(units, Ordering::Relaxed);
    }

    /// Adds a unit for an edge. The caller holds one, so the count is not zero. There are never as
    /// many edges as [`MOST`].
    #[inline]
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a unit that the program keeps, and may forget. The caller holds one.
    ///
    /// **Errors**: more units than [`MOST`]; `what` names them.
    #[inline]
    pub(crate) fn add_kept(&self, what: &'static str) -> Result<(), Error> {
        if self.0.fetch_add(1, Ordering::Relaxed) >= MOST { Err(self.full(what)) } else { Ok(()) }
    }

    #[cold]
    fn full(&self, what: &'static str) -> Error {
        self.0.fetch_sub(1, Ordering::Relaxed);
        Error::Size { what, value: MOST as usize + 1, limit: MOST as usize }
    }

    /// Takes units that the caller holds. Returns `true` if they were the last ones, so that the
    /// caller takes the next step. Then the count is left as it is: nobody else holds a unit, so
    /// nobody reads it.
    ///
    /// **Ordering**: the next step sees what was done before every unit was taken.
    #[inline]
    pub(crate) fn take(&self, units: u32) -> bool {
        self.0.load(Ordering::Acquire) == units
            || self.0.fetch_sub(units, Ordering::AcqRel) == units
    }

    /// Returns the number of units, for reports.
    pub(crate) fn units(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_unit_too_many_is_refused_and_changes_nothing() {
        let counter = EventCounter::new();
        counter.set(MOST - 1);
        counter.add_kept("units").unwrap();
        for _ in 0..3 {
            let full = counter.add_kept("units").unwrap_err();
            assert_eq!(full.to_string(), format!("units is {}, expected at most {MOST}", MOST + 1));
            assert_eq!(counter.units(), MOST);
        }
        assert!(!counter.take(1));
        counter.add_kept("units").unwrap();
        assert!(counter.take(MOST));
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn the_last_unit_moves_on_once_and_sees_everything() {
        loom::model(|| {
            let counter = Arc::new(EventCounter::new());
            counter.set(3);
            let work = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
            let takers: Vec<_> = (0..2)
                .map(|taker| {
                    let (counter, work) = (counter.clone(), work.clone());
                    thread::spawn(move || {
                        work[taker].store(1, Ordering::Relaxed);
                        let last = counter.take(1);
                        let done = work.iter().map(|w| w.load(Ordering::Relaxed)).sum::<u32>();
                        (last, done)
                    })
                })
                .collect();
            let mine = counter.take(1);
            let mut ends = u32::from(mine);
            for taker in takers {
                let (last, done) = taker.join().unwrap();
                ends += u32::from(last);
                assert!(!last || done == 2, "the last one sees the work of both");
            }
            assert_eq!(ends, 1);
        });
    }

    #[test]
    fn a_unit_added_by_a_holder_is_waited_for() {
        loom::model(|| {
            let counter = Arc::new(EventCounter::new());
            counter.set(1);
            counter.add();
            let event = {
                let counter = counter.clone();
                thread::spawn(move || counter.take(1))
            };
            let body = counter.take(1);
            assert_ne!(body, event.join().unwrap(), "exactly one of them was the last");
        });
    }
}
