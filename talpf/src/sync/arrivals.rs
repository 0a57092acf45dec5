//! What has arrived for the rounds of one lane that have not ended.

use crate::numbers::{Rank, Round};
use crate::rounds::Rounds;

/// One round, as the receiver sees it.
#[derive(Debug)]
pub(crate) struct RoundArrivals {
    /// Operations by source.
    pub(crate) data: Box<[u32]>,
    pub(crate) total: u32,
    /// How many operations each source says it has for us.
    pub(crate) counts: Box<[Option<u32>]>,
    pub(crate) counts_in: u32,
    /// Barrier steps that have come, a bit each.
    pub(crate) barrier: u32,
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
    fn new(ranks: usize) -> Self {
        RoundArrivals {
            data: vec![0; ranks].into(),
            total: 0,
            counts: vec![None; ranks].into(),
            counts_in: 0,
            barrier: 0,
            acks: 0,
        }
    }

    fn clear(&mut self) {
        self.data.fill(0);
        if self.counts_in > 0 {
            self.counts.fill(None);
        }
        (self.total, self.counts_in, self.barrier, self.acks) = (0, 0, 0, 0);
    }

    /// The sources of operations.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Rank> + '_ {
        let arrived = self.data.iter().enumerate().filter(|(_, count)| **count > 0);
        arrived.map(|(rank, _)| Rank(rank as u32))
    }
}
