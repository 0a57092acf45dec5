//! Exchanges of random counts among up to 70 ranks, in random orders, against a table of all counts.

use std::collections::VecDeque;

use proptest::prelude::*;
use proptest::test_runner::TestRng;

use super::super::arrivals::RoundArrivals;
use super::*;

/// A rank in an exchange.
struct Member {
    /// The next step whose message it waits for, once it has begun.
    step: Option<u32>,
    arrivals: RoundArrivals,
    /// Completions that it has not taken, with their sources.
    queue: VecDeque<(Rank, u32)>,
}

/// An exchange of what the ranks have for each other, by source and target.
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
        let ranks = self.ranks();
        for target in (0..ranks).map(Rank) {
            let count = self.sent[rank.index()][target.index()];
            if target == rank {
                self.members[rank.index()].arrivals.count(rank, count);
            } else if count > 0 && step_between(rank, target, ranks).is_none() {
                self.members[target.index()].queue.push_back((rank, count));
            }
        }
        self.members[rank.index()].step = Some(0);
        self.send_step(rank, 0);
    }

    fn send_step(&mut self, rank: Rank, step: u32) {
        if let Some(target) = target(rank, step, self.ranks()) {
            let count = self.sent[rank.index()][target.index()];
            self.members[target.index()].queue.push_back((rank, count));
        }
    }

    /// Takes one completion in and goes on. False if there is nothing to do.
    fn turn(&mut self, rank: Rank) -> bool {
        let ranks = self.ranks();
        let member = &mut self.members[rank.index()];
        let taken = member.queue.pop_front();
        if let Some((source, count)) = taken {
            member.arrivals.count(source, count);
            if let Some(step) = step_between(source, rank, ranks) {
                assert!(!member.arrivals.counted.has(step), "step {step} to {rank} came twice");
                member.arrivals.counted.add(step);
            }
        }
        let goes_on = member.step.filter(|step| member.arrivals.counted.has(*step));
        if let Some(step) = goes_on {
            member.step = Some(step + 1);
            self.send_step(rank, step + 1);
        }
        taken.is_some() || goes_on.is_some()
    }

    fn has_ended(&self, rank: Rank) -> bool {
        let step = self.members[rank.index()].step;
        step.is_some_and(|step| target(rank, step, self.ranks()).is_none())
    }

    /// Checks what a rank knows against all counts and all ranks.
    fn check(&self, rank: Rank) -> Result<(), TestCaseError> {
        let Member { arrivals, step, .. } = &self.members[rank.index()];
        let begun = |source: &Rank| self.members[source.index()].step.is_some();
        for source in (0..self.ranks()).map(Rank) {
            if arrivals.counted.tell_of(source, rank, self.ranks()) && source != rank {
                prop_assert!(begun(&source), "{} of {} is told of too early", source, rank);
            }
        }
        let is_over = step.is_some() && arrivals.counted.are_all(self.ranks());
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

/// Few of the counts are not 0.
fn counts(ranks: usize, rng: &mut TestRng) -> Vec<Vec<u32>> {
    let sparsity = [2, 8, 40][rng.random_range(0..3)];
    let mut count = || if rng.random_range(0..sparsity) == 0 { rng.random_range(1..9) } else { 0 };
    (0..ranks).map(|_| (0..ranks).map(|_| count()).collect()).collect()
}

fn exchange(ranks: usize, rng: &mut TestRng) -> Result<(), TestCaseError> {
    let sent = counts(ranks, rng);
    let member =
        |_| Member { step: None, arrivals: RoundArrivals::new(ranks), queue: VecDeque::new() };
    let mut exchange = Exchange { sent: &sent, members: (0..ranks).map(member).collect() };
    let mut left = ranks;
    let mut in_vain = 0;
    // A rank that is drawn so often in vain has been drawn when there was something to do.
    while in_vain < 40 * ranks {
        let rank = Rank(rng.random_range(0..ranks as u32));
        let begins = exchange.members[rank.index()].step.is_none() && rng.random_range(0..4) == 0;
        if begins {
            exchange.begin(rank);
            left -= 1;
        }
        in_vain = if begins || exchange.turn(rank) { 0 } else { in_vain + 1 };
        exchange.check(rank)?;
    }
    prop_assert_eq!(left, 0);
    prop_assert!((0..ranks as u32).map(Rank).all(|rank| exchange.has_ended(rank)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]
    #[test]
    fn every_rank_gets_its_counts_and_ends_when_all_have_begun(rng in any::<u64>().prop_perturb(|_, rng| rng)) {
        let mut rng = rng;
        for ranks in 1..=70 {
            exchange(ranks, &mut rng)?;
        }
    }
}

#[test]
fn ranks_meet_in_one_step_or_none_and_agree_on_it() {
    for ranks in 1..=70 {
        for rank in (0..ranks).map(Rank) {
            let steps = (0..=6).filter_map(|step| Some((step, target(rank, step, ranks)?)));
            for (step, target) in steps.clone() {
                assert_eq!(step_between(rank, target, ranks), Some(step));
                assert_eq!(source(target, step, ranks), rank);
            }
            assert_eq!(steps.count() as u32, ranks.next_power_of_two().trailing_zeros());
            assert_eq!(step_between(rank, rank, ranks), None);
        }
    }
    assert_eq!(target(Rank(0), 32, u32::MAX), None);
}
