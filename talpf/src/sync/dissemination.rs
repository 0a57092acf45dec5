//! Dissemination: all ranks learn that all ranks have begun.
//!
//! Ranks form groups of a few, in the order of their numbers; the first rank of a group leads it.
//! The members of a group notify their leader that they have begun. The leaders disseminate that in
//! as many steps as the logarithm of their number: in the `k`-th every leader sends a message to
//! the leader 2^k groups after it, once it has the messages of its members and of all steps before.
//! Then they notify their members. The `k`-th message says that the 2^k groups up to its sender
//! have begun: the sender's own, and each message before it has doubled the number. So a leader
//! with all messages knows of all ranks, and so does a member that has the message of its leader.
//!
//! Groups of one rank take the fewest steps, which counts where each rank has a core or a process
//! of its own. Where many ranks share few cores the number of messages counts: `n` ranks send about
//! `n log n` of them in groups of one, and little more than `2 n` in larger ones. A group has as many
//! ranks as a worker then, within bounds.
//!
//! A rank sends at most one message to another, so that the step of a message follows from the
//! ranks.
//!
//! **Source**: Hensgen, Finkel, Manber, *Two algorithms for barrier synchronization* (1988).

use std::ops::Range;

use crate::numbers::Rank;

/// Fewest ranks of a group, as a power of two, where ranks share cores.
const FEWEST_BITS: u32 = 3;
/// Most ranks of a group, as a power of two: the steps of a leader are bits of a word.
const MOST_BITS: u32 = 5;

/// The messages of a rank by steps: a step waits for one message and then sends some.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    rank: u32,
    group_bits: u32,
    /// Number of other ranks in the group.
    members: u32,
    /// `true` if the rank leads its group.
    leads: bool,
    groups: u32,
    /// Number of messages that each leader gets from other leaders.
    exchanges: u32,
}

impl Plan {
    /// Makes the plan of `rank`, one of `ranks`, which share `workers` if they are in one process.
    pub(crate) fn new(rank: Rank, ranks: u32, workers: Option<usize>) -> Self {
        let group_bits = match workers {
            Some(workers) if ranks as usize > workers && ranks > 1 << FEWEST_BITS => {
                (ranks as usize / workers).ilog2().clamp(FEWEST_BITS, MOST_BITS)
            }
            _ => 0,
        };
        Plan::in_groups(rank, ranks, group_bits)
    }

    /// Makes the plan in groups of 2^`group_bits` ranks.
    fn in_groups(rank: Rank, ranks: u32, group_bits: u32) -> Self {
        let first = rank.0 >> group_bits << group_bits;
        let groups = ranks.div_ceil(1 << group_bits);
        Plan {
            rank: rank.0,
            group_bits,
            members: (1 << group_bits).min(ranks - first) - 1,
            leads: rank.0 == first,
            groups,
            exchanges: groups.next_power_of_two().trailing_zeros(),
        }
    }

    /// Returns the number of steps.
    #[inline]
    pub(crate) fn steps(&self) -> u32 {
        if self.leads { self.members + self.exchanges } else { 1 }
    }

    /// Returns the ranks to send to once the messages of all steps before `step` have arrived.
    #[inline]
    pub(super) fn targets(&self, step: u32) -> Range<u32> {
        if !self.leads {
            let leader = self.leader();
            return leader..leader + u32::from(step == 0);
        }
        match step.checked_sub(self.members) {
            Some(exchange) if exchange < self.exchanges => {
                let group = (self.group() + (1 << exchange)) % self.groups;
                let leader = group << self.group_bits;
                leader..leader + 1
            }
            Some(_) => self.rank + 1..self.rank + 1 + self.members,
            None => 0..0,
        }
    }

    /// Returns the rank whose message `step` waits for.
    pub(super) fn source(&self, step: u32) -> Rank {
        Rank(match step.checked_sub(self.members) {
            _ if !self.leads => self.leader(),
            None => self.rank + 1 + step,
            Some(exchange) => {
                let group = self.group() + self.groups - (1 << exchange);
                (group % self.groups) << self.group_bits
            }
        })
    }

    /// Returns the step that waits for a message of `source`, if that sends one to this rank.
    #[inline]
    pub(super) fn step_of(&self, source: Rank) -> Option<u32> {
        let group = source.0 >> self.group_bits;
        if !self.leads {
            return (source.0 == self.leader()).then_some(0);
        }
        if group == self.group() {
            return (source.0 - self.rank).checked_sub(1);
        }
        let distance = self.distance(group);
        let is_leader = group << self.group_bits == source.0;
        let meets = is_leader && distance.is_power_of_two();
        meets.then(|| self.members + distance.trailing_zeros())
    }

    /// Returns `true` if the rank sends a message to `target`.
    #[inline]
    pub(super) fn meets(&self, target: Rank) -> bool {
        let group = target.0 >> self.group_bits;
        if group == self.group() {
            return (self.leads || target.0 == self.leader()) && target.0 != self.rank;
        }
        let distance = (group + self.groups - self.group()) % self.groups;
        self.leads && group << self.group_bits == target.0 && distance.is_power_of_two()
    }

    /// Returns `true` if the messages of some `steps` say that `source` has begun.
    pub(super) fn covers(&self, source: Rank, steps: Steps) -> bool {
        if source.0 == self.rank || self.step_of(source).is_some_and(|step| steps.has(step)) {
            return true;
        }
        if !self.leads {
            return steps.has(0);
        }
        let distance = u64::from(self.distance(source.0 >> self.group_bits));
        // The last exchange wraps around: it covers groups that are near a second time.
        let ways = [distance, distance + u64::from(self.groups)].into_iter();
        let mut exchanges = ways.filter_map(|way| way.checked_ilog2());
        exchanges.any(|exchange| exchange < self.exchanges && steps.has(self.members + exchange))
    }

    fn group(&self) -> u32 {
        self.rank >> self.group_bits
    }

    fn leader(&self) -> u32 {
        self.group() << self.group_bits
    }

    /// Returns the number of groups from `group` on to the rank's own.
    fn distance(&self, group: u32) -> u32 {
        (self.group() + self.groups - group) % self.groups
    }
}

/// The steps whose messages have arrived at a rank, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps(u64);

impl Steps {
    #[inline]
    pub(super) fn add(&mut self, step: u32) {
        self.0 |= 1 << step;
    }

    #[inline]
    pub(super) fn has(self, step: u32) -> bool {
        self.0 & 1 << step != 0
    }

    /// Returns `true` if these are all steps of a plan.
    #[inline]
    pub(super) fn are_all(self, plan: &Plan) -> bool {
        self.0.trailing_ones() >= plan.steps()
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests;
