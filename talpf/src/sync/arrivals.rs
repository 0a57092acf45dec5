//! What has arrived for the rounds of one lane that have not ended.

use super::dissemination::Steps;
use crate::numbers::{Rank, Round};
use crate::rounds::Rounds;

/// One round, as the receiver sees it.
#[derive(Debug)]
pub(crate) struct RoundArrivals {
    /// Operations by source.
    pub(crate) data: Box<[u32]>,
    pub(crate) total: u32,
    /// The number of operations that each source says it has for this rank; 0 if it says nothing.
    /// Final once the messages of all steps of the exchange have come.
    counts: Box<[u32]>,
    /// True if any of the counts is not 0.
    has_counts: bool,
    /// Steps of the exchange of counts that have come.
    pub(crate) counted: Steps,
    /// Steps of the barrier that have come.
    pub(crate) barrier: Steps,
    /// Targets of this round that have ended it.
    pub(crate) acks: u32,
}

/// The rounds from the first one that still matters.
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

    /// The first round that still matters.
    #[inline]
    pub(crate) fn first(&self) -> Round {
        self.rounds.first()
    }

    /// A round that still matters; `None` for one that is over, or further ahead than peers may be.
    #[inline]
    pub(crate) fn round(&mut self, round: Round) -> Option<&mut RoundArrivals> {
        let ranks = self.ranks;
        self.rounds.place(round, self.most_ahead, || RoundArrivals::new(ranks))
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
        (self.total, self.has_counts, self.acks) = (0, false, 0);
        (self.counted, self.barrier) = (Steps::default(), Steps::default());
    }

    /// Takes in how many operations a source has for this rank.
    #[inline]
    pub(super) fn count(&mut self, source: Rank, operations: u32) {
        if operations > 0 {
            self.counts[source.index()] = operations;
            self.has_counts = true;
        }
    }

    /// Returns the number of operations that each source says it has for this rank.
    pub(super) fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Returns the number of operations that all sources together say they have: no more than can be
    /// counted, whatever ranks of other processes say.
    pub(super) fn counts_in_all(&self) -> u32 {
        if !self.has_counts {
            return 0;
        }
        let sum: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        u32::try_from(sum).unwrap_or(u32::MAX)
    }

    /// The sources of operations.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Rank> + '_ {
        let arrived = self.data.iter().enumerate().filter(|(_, count)| **count > 0);
        arrived.map(|(rank, _)| Rank(rank as u32))
    }
}
