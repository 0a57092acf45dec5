//! Part of a run that a recorder keeps.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::Event;

/// Records that are kept where there are more than a stream has room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Keep {
    /// The first ones.
    #[default]
    First,
    /// The last ones.
    Last,
}

/// Part of a run outside which nothing is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// The whole run.
    #[default]
    Whole,
    /// Nanoseconds since the start of the run.
    Times(Range<u64>),
    /// Rounds of lane 0: from where the first rank begins the first of them, to where the last rank has ended
    /// the last.
    Rounds {
        /// Numbers of the rounds, from 0.
        rounds: Range<u64>,
        /// Number of ranks.
        ranks: u32,
    },
}

/// Limits of what a recorder keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of records of a stream.
    pub records: usize,
    /// Records that are kept beyond that.
    pub keep: Keep,
    /// Part of the run outside which nothing is kept.
    pub extent: Extent,
    /// `true` if edges of the graph are kept: a record for each task that becomes ready.
    pub edges: bool,
    /// `true` if control messages of syncs are kept: a record for each that is sent, and for each that
    /// arrives.
    pub control: bool,
}

/// Times that are kept, as far as they are known.
#[derive(Debug)]
pub(crate) struct Edges {
    from_ns: AtomicU64,
    until_ns: AtomicU64,
    rounds: Option<Range<u64>>,
    /// Ranks that have not ended the last round.
    ranks_left: AtomicU32,
}

impl Edges {
    /// Returns the edges of a part; `None` for the whole run.
    pub(crate) fn of(extent: &Extent) -> Option<Self> {
        let (from_ns, until_ns, rounds, ranks) = match extent {
            Extent::Whole => return None,
            Extent::Times(times) => (times.start, times.end, None, 0),
            // Nobody ends the round before the first.
            Extent::Rounds { rounds, .. } if rounds.is_empty() => (u64::MAX, u64::MAX, None, 0),
            Extent::Rounds { rounds, ranks } => {
                let from_ns = if rounds.start == 0 { 0 } else { u64::MAX };
                (from_ns, u64::MAX, Some(rounds.clone()), *ranks)
            }
        };
        let (from_ns, until_ns) = (AtomicU64::new(from_ns), AtomicU64::new(until_ns));
        Some(Self { from_ns, until_ns, rounds, ranks_left: AtomicU32::new(ranks) })
    }

    /// Returns the times that are kept, as far as they are known.
    pub(crate) fn times(&self) -> Range<u64> {
        self.from_ns.load(Relaxed)..self.until_ns.load(Relaxed)
    }

    /// Returns the part of an event that is kept, with its time, if there is any.
    pub(crate) fn keep(&self, time_ns: u64, event: Event) -> Option<(u64, Event)> {
        self.note_round(time_ns, &event);
        let Range { start, end } = self.times();
        let began_ns = event.began_ns().unwrap_or(time_ns);
        // What ends a round at the last time still belongs to it.
        let is_last = matches!(event, Event::SyncEnd { .. }) && time_ns == end;
        let is_kept = time_ns >= start && (began_ns < end || is_last);
        is_kept.then(|| (time_ns.min(end), event.from(start)))
    }

    /// Sets the edges where rounds end.
    fn note_round(&self, time_ns: u64, event: &Event) {
        let (Some(rounds), Event::SyncEnd { lane: 0, round, .. }) = (&self.rounds, event) else {
            return;
        };
        if *round + 1 == rounds.start {
            self.from_ns.fetch_min(time_ns, Relaxed);
        } else if *round + 1 == rounds.end && self.ranks_left.fetch_sub(1, Relaxed) == 1 {
            self.until_ns.store(time_ns, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LabelId, State, WaitNs};

    fn ended(rank: u32, round: u64) -> Event {
        let (posted, arrived) = (WaitNs::default(), WaitNs::default());
        Event::SyncEnd { rank, lane: 0, round, posted, arrived }
    }

    #[test]
    fn slices_are_cut_at_both_edges() {
        let edges = Edges::of(&Extent::Times(10..20)).unwrap();
        let slice = |began_ns| Event::StateSlice { state: State::Polling, began_ns };
        assert_eq!(edges.keep(9, slice(5)), None);
        assert_eq!(edges.keep(10, slice(5)), Some((10, slice(10))));
        assert_eq!(edges.keep(30, slice(5)), Some((20, slice(10))));
        assert_eq!(edges.keep(30, slice(19)), Some((20, slice(19))));
        assert_eq!(edges.keep(30, slice(20)), None);
        assert_eq!(edges.keep(19, ended(0, 0)), Some((19, ended(0, 0))));
        assert_eq!(edges.keep(21, ended(0, 0)), None);
    }

    #[test]
    fn a_task_that_began_before_does_not_start_again() {
        let edges = Edges::of(&Extent::Times(10..20)).unwrap();
        let slice = |starts, began_ns| Event::TaskSlice {
            starts,
            rank: 0,
            task: 1,
            label: LabelId::UNNAMED,
            began_ns,
        };
        assert_eq!(edges.keep(15, slice(true, 9)), Some((15, slice(false, 10))));
        assert_eq!(edges.keep(15, slice(true, 10)), Some((15, slice(true, 10))));
    }

    #[test]
    fn rounds_are_kept_from_the_first_rank_to_the_last() {
        let edges = Edges::of(&Extent::Rounds { rounds: 2..3, ranks: 2 }).unwrap();
        let kept = [
            (5, ended(0, 0), false),
            (10, ended(0, 1), true),
            (11, ended(1, 1), true),
            (20, ended(0, 2), true),
            (25, ended(0, 3), true),
            (30, ended(1, 2), true),
            (31, ended(1, 3), false),
        ];
        for (time, event, is_kept) in kept {
            assert_eq!(edges.keep(time, event).is_some(), is_kept, "{time}");
        }
        assert_eq!(edges.times(), 10..30);
    }
}
