//! Exchanges of random counts among up to 70 ranks, in random orders, against a table of all
//! counts.

use std::collections::VecDeque;

use proptest::prelude::*;
use proptest::test_runner::TestRng;

use super::super::arrivals::RoundArrivals;
use super::*;

/// A rank in an exchange.
struct Member {
    plan: Plan,
    /// The current step, once the rank has begun.
    step: Option<u32>,
    arrivals: RoundArrivals,
    /// Counts that have not been taken in, with their sources.
    queue: VecDeque<(Rank, u32)>,
}

impl Member {
    /// Returns the step after the current one, if the message that this waits for has come.
    fn next_step(&self) -> Option<u32> {
        let current = self.step.filter(|step| *step < self.plan.steps())?;
        self.arrivals.counted.has(current).then_some(current + 1)
    }
}

/// An exchange of the counts that the ranks have for each other, by source and target.
struct Exchange<'a> {
    sent: &'a [Vec<u32>],
    members: Vec<Member>,
}

impl Exchange<'_> {
    fn ranks(&self) -> u32 {
        self.sent.len() as u32
    }

    /// As `State::announce_counts`, of a rank whose messages are carried out at once.
    fn begin(&mut self, rank: Rank) {
        let plan = self.members[rank.index()].plan;
        for target in (0..self.ranks()).map(Rank) {
            let count = self.sent[rank.index()][target.index()];
            if target == rank {
                self.members[rank.index()].arrivals.count(rank, count);
            } else if count > 0 && !plan.meets(target) {
                self.members[target.index()].queue.push_back((rank, count));
            }
        }
        self.members[rank.index()].step = Some(0);
        self.send_step(rank, 0);
    }

    fn send_step(&mut self, rank: Rank, step: u32) {
        let plan = self.members[rank.index()].plan;
        for target in plan.targets(step).map(Rank) {
            let count = self.sent[rank.index()][target.index()];
            self.members[target.index()].queue.push_back((rank, count));
        }
    }

    /// Returns `true` if a rank has not begun, or can go on.
    fn is_ready(&self, rank: Rank) -> bool {
        let member = &self.members[rank.index()];
        member.step.is_none() || !member.queue.is_empty() || member.next_step().is_some()
    }

    /// Takes one completion in, if there is one, and advances.
    fn advance(&mut self, rank: Rank) {
        let member = &mut self.members[rank.index()];
        if let Some((source, count)) = member.queue.pop_front() {
            member.arrivals.count(source, count);
            if let Some(step) = member.plan.step_of(source) {
                assert!(!member.arrivals.counted.has(step), "step {step} to {rank} came twice");
                member.arrivals.counted.add(step);
            }
        }
        if let Some(next) = member.next_step() {
            member.step = Some(next);
            self.send_step(rank, next);
        }
    }

    fn has_ended(&self, rank: Rank) -> bool {
        let Member { plan, step, .. } = &self.members[rank.index()];
        *step == Some(plan.steps())
    }

    /// Compares the knowledge of a rank with all counts and all ranks.
    fn check(&self, rank: Rank) -> Result<(), TestCaseError> {
        let Member { plan, arrivals, step, .. } = &self.members[rank.index()];
        let begun = |source: &Rank| self.members[source.index()].step.is_some();
        for source in (0..self.ranks()).map(Rank) {
            if plan.covers(source, arrivals.counted) && source != rank {
                prop_assert!(begun(&source), "{} of {} is covered too early", source, rank);
            }
        }
        let is_over = step.is_some() && arrivals.counted.are_all(plan);
        prop_assert!(!self.has_ended(rank) || is_over);
        if self.has_ended(rank) {
            let all: Vec<u32> = self.sent.iter().map(|row| row[rank.index()]).collect();
            prop_assert_eq!(arrivals.counts(), &all[..]);
            prop_assert_eq!(arrivals.counts_in_all(), all.iter().sum::<u32>());
            prop_assert!((0..self.ranks()).map(Rank).all(|source| begun(&source)));
        }
        Ok(())
    }
}

/// Draws counts, few of which are not 0.
fn counts(ranks: usize, rng: &mut TestRng) -> Vec<Vec<u32>> {
    let sparsity = [2, 8, 40][rng.random_range(0..3)];
    let mut count = || if rng.random_range(0..sparsity) == 0 { rng.random_range(1..9) } else { 0 };
    (0..ranks).map(|_| (0..ranks).map(|_| count()).collect()).collect()
}

fn exchange(ranks: usize, group_bits: u32, rng: &mut TestRng) -> Result<(), TestCaseError> {
    let sent = counts(ranks, rng);
    let member = |rank| Member {
        plan: Plan::in_groups(Rank(rank as u32), ranks as u32, group_bits),
        step: None,
        arrivals: RoundArrivals::new(ranks),
        queue: VecDeque::new(),
    };
    let mut exchange = Exchange { sent: &sent, members: (0..ranks).map(member).collect() };
    let all = || (0..ranks as u32).map(Rank);
    let mut ready: Vec<Rank> = all().collect();
    while !ready.is_empty() {
        let rank = ready[rng.random_range(0..ready.len())];
        let has_begun = exchange.members[rank.index()].step.is_some();
        if !has_begun && rng.random_range(0..4) == 0 {
            exchange.begin(rank);
        }
        exchange.advance(rank);
        exchange.check(rank)?;
        ready.clear();
        ready.extend(all().filter(|rank| exchange.is_ready(*rank)));
    }
    prop_assert!(all().all(|rank| exchange.has_ended(rank)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]
    #[test]
    fn every_rank_gets_its_counts_and_ends_when_all_have_begun(rng in any::<u64>().prop_perturb(|_, rng| rng)) {
        let mut rng = rng;
        for ranks in 1..=70 {
            for group_bits in [0, 1, FEWEST_BITS, MOST_BITS] {
                exchange(ranks, group_bits, &mut rng)?;
            }
        }
    }
}

#[test]
fn ranks_meet_once_or_never_and_agree_on_the_step() {
    for (ranks, group_bits) in (1..=70).flat_map(|ranks| (0..=4).map(move |bits| (ranks, bits))) {
        let plan = |rank| Plan::in_groups(rank, ranks, group_bits);
        let all = || (0..ranks).map(Rank);
        let messages =
            |rank: Rank| (0..=plan(rank).steps()).flat_map(move |s| plan(rank).targets(s));
        for rank in all() {
            let mut targets: Vec<u32> = messages(rank).collect();
            targets.sort_unstable();
            let meets = all().filter(|target| plan(rank).meets(*target)).map(|target| target.0);
            assert_eq!(targets, meets.collect::<Vec<_>>(), "{rank} of {ranks} in {group_bits}");
            for target in targets.into_iter().map(Rank) {
                let step = plan(target).step_of(rank).unwrap();
                assert_eq!(plan(target).source(step), rank);
            }
            let steps = all().filter_map(|source| plan(rank).step_of(source));
            let mut steps: Vec<u32> = steps.collect();
            steps.sort_unstable();
            assert_eq!(steps, (0..plan(rank).steps()).collect::<Vec<_>>());
        }
    }
}

#[test]
fn groups_are_for_ranks_that_share_cores() {
    let steps = |ranks, workers| Plan::new(Rank(1), ranks, workers).steps();
    assert_eq!([steps(128, None), steps(128, Some(128)), steps(128, Some(127))], [7, 7, 1]);
    assert_eq!([steps(8, Some(1)), steps(9, Some(1))], [3, 1]);
    // A rank counts the steps of the most ranks that there may be in a word.
    assert_eq!(Plan::new(Rank(0), u32::MAX, Some(1)).steps(), 31 + 27);
}
