//! The decision after each poll of a service: poll again, pause, nap or sleep.

use std::time::Duration;

use talpf_primitives::{AtomicU64, Ordering};

use super::empty_polls::EmptyPolls;
use super::timing::{
    LONGEST_LATE_NAP, LONGEST_NAP, LONGEST_WAIT, NAP_AFTER_NONE, NAPPED_PER_NAP, PATIENCE,
    PATIENCE_BEFORE_NAPS, PATIENCE_FOR_PROCESSES, PATIENCE_OVERSUBSCRIBED,
    PATIENCE_WHILE_OTHERS_POLL, PATIENCE_WITHOUT_WORK, SHORTEST_NAP,
};

/// Outcome of one poll.
#[derive(Clone, Copy, Debug)]
pub struct Polled {
    /// `true` if the poll has found something, or something was begun since the one before.
    pub found: bool,
    /// Reason for further polls.
    pub demand: Demand,
    /// `true` if everything that may happen is announced, by the event of the service or by a wake,
    /// so that its task may sleep.
    pub announced: bool,
}

/// Reason of a service to poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Nothing is under way.
    Nothing,
    /// Somebody waits for something that polls find.
    Polls,
    /// Somebody waits for something of other processes, or may do so: their event wakes a thread that
    /// wakes the task.
    Processes,
    /// Somebody waits for something that other threads find, too. Each poll delays them, because it
    /// takes cache lines away from them.
    Others,
}

/// Time between the polls of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// None as long as a worker is idle and the service is patient.
    #[default]
    Adaptive,
    /// Naps while something is under way: of `least` after a poll that finds something, then doubling
    /// up to `most`.
    Naps {
        /// Shortest nap.
        least: Duration,
        /// Longest nap.
        most: Duration,
    },
}

/// Next step of the task of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Wait, while other threads poll.
    Pause(Duration),
    /// Wait, while nobody polls.
    Nap(Duration),
    /// Sleep until the event or a wake.
    Sleep,
    /// Return: the service has ended.
    End,
}

/// State of a service between polls. Several threads may poll: it is a hint.
#[derive(Debug)]
pub struct Backoff {
    is_adaptive: bool,
    empty: EmptyPolls,
    naps: Naps,
}

/// Naps that become longer. The state is a hint, as that of [`EmptyPolls`]: if two threads poll, it may not begin anew
/// after a poll that has found something, but after the next one.
#[derive(Debug)]
struct Naps {
    least_ns: u64,
    /// Longest nap, and longest one after many.
    most_ns: [u64; 2],
    next_ns: AtomicU64,
    /// Time of all naps since a poll has found something.
    napped_ns: AtomicU64,
}

impl Backoff {
    /// Creates the state before the first poll.
    pub fn new(pace: Pace) -> Self {
        let (is_adaptive, least, most) = match pace {
            Pace::Adaptive => (true, SHORTEST_NAP, [LONGEST_NAP, LONGEST_LATE_NAP]),
            Pace::Naps { least, most } => (false, least, [most; 2]),
        };
        Backoff { is_adaptive, empty: EmptyPolls::new(), naps: Naps::new(least, most) }
    }

    /// Begins anew, as after a poll that has found something.
    pub(super) fn reset(&self) {
        self.empty.end();
        self.naps.reset();
    }

    /// Returns the time to sleep after a poll of a thread that runs no task and polls without an
    /// event, or `None` to yield the core and poll again. `now_ns` reads the clock.
    pub fn nap_of_thread(&self, found: bool, now_ns: impl FnOnce() -> u64) -> Option<Duration> {
        match self.next(Polled { found, demand: Demand::Polls, announced: false }, true, now_ns) {
            Some(Step::Nap(period)) => Some(period),
            _ => None,
        }
    }

    /// Returns the next step after a poll, or `None` to poll again as soon as a worker is idle.
    /// `now_ns` reads the clock.
    #[inline]
    pub(super) fn next(
        &self,
        polled: Polled,
        oversubscribed: bool,
        now_ns: impl FnOnce() -> u64,
    ) -> Option<Step> {
        let Polled { found, demand, announced } = polled;
        let is_patient = if found {
            self.reset();
            true
        } else {
            let patience = patience(demand, announced, oversubscribed);
            let reads_always = demand == Demand::Others || oversubscribed;
            !self.empty.last(patience, reads_always, now_ns)
        };
        match demand {
            Demand::Others if self.is_adaptive && is_patient => Some(Step::Pause(LONGEST_WAIT)),
            _ if self.is_adaptive && is_patient => None,
            _ if announced && (self.is_adaptive || demand == Demand::Nothing) => Some(Step::Sleep),
            // Programs ask for a pace of what they have begun.
            Demand::Nothing if !self.is_adaptive => Some(Step::Nap(LONGEST_NAP)),
            _ => Some(Step::Nap(self.naps.next(found))),
        }
    }
}

/// Returns the time of empty polls before a nap or a sleep.
#[inline]
fn patience(demand: Demand, announced: bool, oversubscribed: bool) -> Duration {
    match demand {
        _ if oversubscribed && (!announced || demand == Demand::Processes) => {
            PATIENCE_OVERSUBSCRIBED
        }
        _ if !announced => PATIENCE_BEFORE_NAPS,
        Demand::Processes => PATIENCE_FOR_PROCESSES,
        Demand::Others => PATIENCE_WHILE_OTHERS_POLL,
        Demand::Polls => PATIENCE,
        Demand::Nothing => PATIENCE_WITHOUT_WORK,
    }
}

impl Naps {
    fn new(least: Duration, most: [Duration; 2]) -> Self {
        let (least_ns, most_ns) = (nanoseconds(least), most.map(nanoseconds));
        let (next_ns, napped_ns) = (AtomicU64::new(least_ns), AtomicU64::new(0));
        Naps { least_ns, most_ns, next_ns, napped_ns }
    }

    #[inline]
    fn reset(&self) {
        self.next_ns.store(self.least_ns, Ordering::Relaxed);
        self.napped_ns.store(0, Ordering::Relaxed);
    }

    /// Returns the time of the next nap, which is the shortest if the poll before has found
    /// something.
    fn next(&self, found: bool) -> Duration {
        let nap_ns = self.next_ns.load(Ordering::Relaxed);
        if !found {
            let napped_ns = self.napped_ns.load(Ordering::Relaxed).saturating_add(nap_ns);
            self.napped_ns.store(napped_ns, Ordering::Relaxed);
            let [most_ns, most_late_ns] = self.most_ns;
            let most_ns = (napped_ns / NAPPED_PER_NAP).clamp(most_ns, most_late_ns);
            let longer_ns = nap_ns.saturating_mul(2).max(nanoseconds(NAP_AFTER_NONE));
            self.next_ns.store(longer_ns.min(most_ns), Ordering::Relaxed);
        }
        Duration::from_nanos(nap_ns)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    fn us(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    fn empty(demand: Demand, announced: bool) -> Polled {
        Polled { found: false, demand, announced }
    }

    fn naps(least: u64, most: u64) -> Backoff {
        Backoff::new(Pace::Naps { least: us(least), most: us(most) })
    }

    /// Polls every microsecond until there is a step. Returns the number of polls before it, and the
    /// step.
    fn poll_until_step(backoff: &Backoff, polled: Polled, oversubscribed: bool) -> (u64, Step) {
        (0..1_000_000)
            .find_map(|poll| {
                let step = backoff.next(polled, oversubscribed, || poll * US);
                step.map(|step| (poll, step))
            })
            .expect("patience has an end")
    }

    #[test]
    fn a_service_with_an_event_polls_for_its_patience_and_sleeps() {
        for (demand, oversubscribed, least) in [
            (Demand::Nothing, false, 10),
            (Demand::Polls, false, 100),
            (Demand::Processes, false, 1_000),
            (Demand::Processes, true, 300),
        ] {
            let backoff = Backoff::new(Pace::Adaptive);
            let (polls, step) = poll_until_step(&backoff, empty(demand, true), oversubscribed);
            assert_eq!(step, Step::Sleep);
            assert!((least..least + 64).contains(&polls), "{demand:?}: {polls} polls");
        }
    }

    #[test]
    fn a_service_without_an_event_is_patient_and_then_naps_for_longer_and_longer() {
        for (oversubscribed, least) in [(false, 1_000), (true, 300)] {
            for demand in [Demand::Nothing, Demand::Polls] {
                let backoff = Backoff::new(Pace::Adaptive);
                let polled = empty(demand, false);
                let (polls, step) = poll_until_step(&backoff, polled, oversubscribed);
                assert!((least..least + 64).contains(&polls), "{demand:?}: {polls} polls");
                assert_eq!(step, Step::Nap(us(5)));
                let later = || backoff.next(polled, oversubscribed, || 1_000_000 * US);
                let periods = [10, 20, 40, 80, 160, 200, 200].map(|nap| Some(Step::Nap(us(nap))));
                assert_eq!([(); 7].map(|()| later()), periods);
                let found = Polled { found: true, ..polled };
                assert_eq!(backoff.next(found, oversubscribed, || unreachable!()), None);
                let (_, step) = poll_until_step(&backoff, polled, oversubscribed);
                assert_eq!(step, Step::Nap(us(5)));
            }
        }
    }

    #[test]
    fn naps_become_longer_than_usual_only_while_they_are_a_hundredth_of_the_time() {
        let backoff = Backoff::new(Pace::Adaptive);
        let polled = empty(Demand::Polls, false);
        let (mut naps, mut napped) = (Vec::new(), Duration::ZERO);
        poll_until_step(&backoff, polled, false);
        while napped < us(500_000) {
            let Some(Step::Nap(nap)) = backoff.next(polled, false, || 1_000_000 * US) else {
                panic!("a service that has napped goes on");
            };
            assert!(nap <= us(200).max(napped / 100 + us(1)), "{nap:?} after {napped:?}");
            naps.push(nap);
            napped += nap;
        }
        assert_eq!((naps.iter().max(), naps.is_sorted()), (Some(&us(1_000)), true));
        assert!(naps.len() < 800, "{} naps in {napped:?}", naps.len());
    }

    #[test]
    fn polls_for_what_others_find_are_apart_until_the_sleep() {
        let backoff = Backoff::new(Pace::Adaptive);
        let polled = empty(Demand::Others, true);
        let next = |at| backoff.next(polled, false, || at * US);
        assert_eq!([0, 20, 999].map(next), [Some(Step::Pause(us(20))); 3]);
        assert_eq!(next(1_000), Some(Step::Sleep));
        let found = Polled { found: true, ..polled };
        assert_eq!(backoff.next(found, false, || unreachable!()), Some(Step::Pause(us(20))));
    }

    #[test]
    fn something_found_begins_the_patience_anew() {
        let backoff = Backoff::new(Pace::Adaptive);
        let polled = empty(Demand::Polls, true);
        for _ in 0..3 {
            let (polls, _) = poll_until_step(&backoff, polled, false);
            assert!(polls >= 100, "{polls} polls");
            let found = Polled { found: true, ..polled };
            assert_eq!(backoff.next(found, false, || unreachable!()), None);
        }
    }

    #[test]
    fn a_pace_is_kept_from_the_first_poll_on_and_falls_back() {
        let backoff = naps(10, 35);
        let next = |found| {
            let polled = Polled { found, ..empty(Demand::Polls, true) };
            match backoff.next(polled, false, || 0) {
                Some(Step::Nap(period)) => period,
                step => panic!("{step:?}"),
            }
        };
        let periods = [false, false, false, false, true, false, false].map(next);
        assert_eq!(periods, [10, 20, 35, 35, 10, 10, 20].map(us));
        let same = naps(7, 7);
        for found in [false, true, false] {
            let polled = Polled { found, ..empty(Demand::Others, true) };
            assert_eq!(same.next(polled, false, || 0), Some(Step::Nap(us(7))));
        }
        let from_none = naps(0, 2);
        let polled = empty(Demand::Polls, false);
        let periods = [(); 4].map(|()| from_none.next(polled, false, || 0));
        assert_eq!(periods, [0, 1, 2, 2].map(|nap| Some(Step::Nap(us(nap)))));
    }

    #[test]
    fn a_pace_is_of_what_is_under_way_only() {
        let backoff = naps(1_000_000, 1_000_000);
        let next = |announced| backoff.next(empty(Demand::Nothing, announced), false, || 0);
        assert_eq!(next(true), Some(Step::Sleep));
        assert_eq!(next(false), Some(Step::Nap(us(200))));
    }
}
