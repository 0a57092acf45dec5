//! Arrivals of the rounds of one lane that have not ended.

use super::dissemination::Steps;
use crate::numbers::{Rank, Round};
use crate::rounds::Rounds;

/// Arrivals of one round at its receiver.
#[derive(Debug)]
pub(crate) struct RoundArrivals {
    /// Number of operations that have arrived, by source.
    pub(crate) data: Box<[u32]>,
    pub(crate) total: u32,
    /// Time of the last arrival, in a run that is traced; 0 before.
    pub(crate) last_ns: u64,
    /// Number of operations that each source has announced for this rank; 0 without a message.
    /// Final once the messages of all steps of the exchange have arrived.
    counts: Box<[u32]>,
    /// `true` if any of the counts is not 0.
    has_counts: bool,
    /// Steps of the exchange of counts whose messages have arrived.
    pub(crate) counted: Steps,
    /// Steps of the barrier whose messages have arrived.
    pub(crate) barrier: Steps,
    /// Number of targets of this round that have acknowledged its end.
    pub(crate) acks: u32,
}

/// Arrivals of one lane, from the first round that has not ended.
#[derive(Debug)]
pub(crate) struct LaneArrivals {
    ranks: usize,
    most_ahead: u64,
    rounds: Rounds<RoundArrivals>,
}

impl LaneArrivals {
    pub(crate) fn new(ranks: usize, most_ahead: u64) -> Self {
        LaneArrivals { ranks, most_ahead, rounds: Rounds::default() }
    }

    /// Returns the first round that has not ended.
    #[inline]
    pub(crate) fn first(&self) -> Round {
        self.rounds.first()
    }

    /// Returns a round; `None` if it has ended, or is further ahead than peers may be.
    #[inline]
    pub(crate) fn round(&mut self, round: Round) -> Option<&mut RoundArrivals> {
        let ranks = self.ranks;
        self.rounds.entry(round, self.most_ahead, || RoundArrivals::new(ranks))
    }

    /// Forgets the rounds before `round`.
    pub(crate) fn forget_before(&mut self, round: Round) {
        while self.first() < round {
            self.rounds.pass().into_iter().for_each(RoundArrivals::clear);
        }
    }
}

impl RoundArrivals {
    pub(super) fn new(ranks: usize) -> Self {
        RoundArrivals {
            data: vec![0; ranks].into(),
            total: 0,
            last_ns: 0,
            counts: vec![0; ranks].into(),
            has_counts: false,
            counted: Steps::default(),
            barrier: Steps::default(),
            acks: 0,
        }
    }

    fn clear(&mut self) {
        if self.total > 0 {
            self.data.fill(0);
        }
        if self.has_counts {
            self.counts.fill(0);
        }
        (self.total, self.last_ns, self.has_counts, self.acks) = (0, 0, false, 0);
        (self.counted, self.barrier) = (Steps::default(), Steps::default());
    }

    /// Sets the number of operations that a source has announced for this rank.
    #[inline]
    pub(super) fn count(&mut self, source: Rank, operations: u32) {
        if operations > 0 {
            self.counts[source.index()] = operations;
            self.has_counts = true;
        }
    }

    /// Returns the number of operations that each source has announced for this rank.
    pub(super) fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Returns the number of operations that all sources together have announced, saturating: ranks
    /// of other processes may send any count.
    pub(super) fn counts_in_all(&self) -> u32 {
        if !self.has_counts {
            return 0;
        }
        let sum: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        u32::try_from(sum).unwrap_or(u32::MAX)
    }

    /// Iterates over the sources of the operations that have arrived.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Rank> + '_ {
        let arrived = self.data.iter().enumerate().filter(|(_, count)| **count > 0);
        arrived.map(|(rank, _)| Rank(rank as u32))
    }
}
