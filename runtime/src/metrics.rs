//! Counts of a runtime, kept all the time.
//!
//! Every worker counts on cache lines of its own with plain stores; reading adds them up, so a
//! reading is a snapshot of counts that go on. A task costs a branch or two more at most: derived
//! values are computed when read, and one of 64 delays is measured.

use std::time::Duration;

use crate::scheduler::CoreTimes;

/// Counts of the workers of a runtime since it started.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Metrics {
    /// Number of tasks that were spawned, mains and services included. The tasks of a replayed
    /// graph do not count here but in `runs`, in every step.
    pub created: u64,
    /// Number of tasks that are complete.
    pub completed: u64,
    /// Number of times a task was queued: it was ready, or an async body was woken or yielded.
    pub made_ready: u64,
    /// Number of times a worker ran a queued task, services not counted. Inline tasks, which run
    /// where they become ready, are not queued.
    pub runs: u64,
    /// Number of times a worker ran a service: passes of pollers.
    pub poll_passes: u64,
    /// Number of times a worker took tasks from another.
    pub steals: u64,
    /// Number of times a worker parked.
    pub parks: u64,
    /// Tasks in the queues.
    pub queued: QueueDepths,
    /// Delays from ready to run, of a sample of the tasks.
    pub delays: Delays,
    /// Time since the start, up to now or to the end of the runtime.
    pub elapsed: Duration,
    /// Time that each worker had no task, parked or not. Running services counts as idle. Empty in
    /// virtual time.
    pub idle: Vec<Duration>,
    /// Times that virtual cores have been busy, in virtual time.
    pub core_times: Option<CoreTimes>,
}

/// Numbers of tasks in queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueDepths {
    /// Tasks in the next slots of workers.
    pub next: u64,
    /// Tasks in the deques and affinity queues of the workers.
    pub own: u64,
    /// Tasks from outside the workers, woken mains, and tasks that thieves gave back.
    pub shared: u64,
    /// Tasks with a priority other than 0.
    pub priorities: u64,
}

/// Times in classes of powers of two.
///
/// About every 64 tasks a worker measures one of priority 0 that it has queued, if it runs it
/// itself: two readings of the clock in 64 tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Counts by the number of binary digits of the nanoseconds.
    counts: [u64; CLASSES],
}

/// Number of classes. The last one has all times from 2^30 ns, a second.
pub(crate) const CLASSES: usize = 32;

impl Metrics {
    /// Returns the share of the time of all workers in which they had no task, 0 to 1.
    pub fn idle_share(&self) -> f64 {
        let idle: Duration = self.idle.iter().sum();
        let all = self.elapsed.as_secs_f64() * self.idle.len() as f64;
        if all > 0.0 { (idle.as_secs_f64() / all).clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// Number of counts that add up, of the tasks and of the queues.
const COUNTS: usize = 11;

impl Metrics {
    /// Adds the counts of another runtime of the same run, as in another process: the workers of both are
    /// those of the sum, which lasts as long as the longer one.
    pub fn add(&mut self, other: &Self) {
        let add = |(sum, more): (&mut u64, u64)| *sum = sum.saturating_add(more);
        let more = other.clone().counts().map(|count| *count);
        self.counts().into_iter().zip(more).for_each(add);
        self.delays.counts.iter_mut().zip(other.delays.counts).for_each(add);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.idle.extend(&other.idle);
    }

    /// Returns the counts as words for [`from_words`](Self::from_words), which another process may call.
    /// Times of virtual cores are left out.
    pub fn to_words(&self) -> Vec<u64> {
        let counts = self.clone().counts().map(|count| *count);
        let elapsed = self.elapsed.as_nanos() as u64;
        let idle = self.idle.iter().map(|idle| idle.as_nanos() as u64);
        counts.into_iter().chain([elapsed]).chain(self.delays.counts).chain(idle).collect()
    }

    /// Returns the metrics of these words; `None` if they are too few.
    pub fn from_words(words: &[u64]) -> Option<Self> {
        let (counts, rest) = words.split_first_chunk::<COUNTS>()?;
        let (elapsed, rest) = rest.split_first()?;
        let (delays, idle) = rest.split_first_chunk()?;
        let mut metrics = Self {
            delays: Delays { counts: *delays },
            elapsed: Duration::from_nanos(*elapsed),
            idle: idle.iter().map(|ns| Duration::from_nanos(*ns)).collect(),
            ..Self::default()
        };
        metrics.counts().into_iter().zip(counts).for_each(|(count, word)| *count = *word);
        Some(metrics)
    }

    /// Returns the counts that add up, in the order of their words.
    fn counts(&mut self) -> [&mut u64; COUNTS] {
        let Self { created, completed, made_ready, runs, poll_passes, steals, parks, .. } = self;
        let QueueDepths { next, own, shared, priorities } = &mut self.queued;
        [
            created,
            completed,
            made_ready,
            runs,
            poll_passes,
            steals,
            parks,
            next,
            own,
            shared,
            priorities,
        ]
    }
}

impl QueueDepths {
    /// Returns the number of tasks in all queues.
    pub fn total(&self) -> u64 {
        self.next + self.own + self.shared + self.priorities
    }
}

impl Delays {
    pub(crate) fn add(&mut self, class: usize, count: u64) {
        self.counts[class] += count;
    }

    /// Returns the number of measured delays.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns a time that the given share of the delays does not exceed, 0.5 for the median: the
    /// upper end of a class. `None` if no delay was measured.
    pub fn within(&self, share: f64) -> Option<Duration> {
        let wanted = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.classes().find_map(|(below, count)| {
            seen += count;
            (seen >= wanted).then_some(below)
        })
    }

    /// Returns the upper end and the count of each class that is not empty, in order.
    pub fn classes(&self) -> impl Iterator<Item = (Duration, u64)> {
        let classes = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        classes.map(|(class, count)| (Duration::from_nanos(1 << class), *count))
    }
}

/// Returns the class of a time.
pub(crate) fn class_of(ns: u64) -> usize {
    ((u64::BITS - ns.leading_zeros()) as usize).min(CLASSES - 1)
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_below_the_end_of_its_class_and_not_below_the_one_before() {
        for ns in [0, 1, 2, 3, 4, 1023, 1024, (1 << 30) - 1] {
            let class = class_of(ns);
            assert!(ns < 1 << class, "{ns}");
            assert!(class == 0 || ns >= 1 << (class - 1), "{ns}");
        }
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn metrics_come_back_from_their_words_and_add_up() {
        let words: Vec<u64> = (1..).take(COUNTS + 1 + CLASSES + 3).collect();
        let metrics = Metrics::from_words(&words).unwrap();
        assert_eq!(metrics.to_words(), words);
        assert_eq!(Metrics::from_words(&words[..COUNTS + CLASSES]), None);
        let mut sum = metrics.clone();
        sum.add(&Metrics { elapsed: Duration::from_nanos(99), ..metrics.clone() });
        assert_eq!((sum.created, sum.queued.total()), (2, 2 * metrics.queued.total()));
        assert_eq!((sum.elapsed.as_nanos(), sum.idle.len()), (99, 6));
        assert_eq!(sum.delays.count(), 2 * metrics.delays.count());
    }

    #[test]
    fn shares_are_the_ends_of_classes() {
        let mut delays = Delays::default();
        assert_eq!(delays.within(0.5), None);
        for ns in [5, 6, 7, 900] {
            delays.add(class_of(ns), 1);
        }
        assert_eq!(delays.count(), 4);
        assert_eq!(delays.within(0.0), Some(Duration::from_nanos(8)));
        assert_eq!(delays.within(0.75), Some(Duration::from_nanos(8)));
        assert_eq!(delays.within(0.76), Some(Duration::from_nanos(1024)));
        assert_eq!(delays.within(1.0), Some(Duration::from_nanos(1024)));
    }
}
