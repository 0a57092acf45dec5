//! Schedules carried out by a model: all ranks in one thread, messages as slow as they can be.
//!
//! A send ends only when its message is received; what it reads must not change before, and what
//! a receive writes must not be read. Values are the texts of expressions, so an order of operands
//! is seen.

use std::collections::VecDeque;

use super::*;
use crate::collective::schedule::{BufferRole, Schedule, ScheduleStep, Span};

/// Value of an element that a message may write at any time.
const IN_FLIGHT: &str = "in flight";

struct Rank {
    schedule: Schedule,
    next: usize,
    places: [Vec<String>; 3],
    sends: VecDeque<(usize, Span, Vec<String>)>,
    receives: VecDeque<(usize, Span)>,
}

impl Rank {
    fn new(schedule: Schedule, input: Vec<String>, output: Vec<String>) -> Self {
        let scratch = vec!["fresh".to_owned(); schedule.scratch()];
        let places = [input, output, scratch];
        Rank { schedule, next: 0, places, sends: VecDeque::new(), receives: VecDeque::new() }
    }

    fn at(&mut self, span: Span) -> &mut [String] {
        let place = match span.role {
            BufferRole::Input => 0,
            BufferRole::Output => 1,
            BufferRole::Scratch => 2,
        };
        &mut self.places[place][span.start..][..span.len]
    }

    fn settled(&mut self, span: Span) -> Vec<String> {
        let values = self.at(span).to_vec();
        assert!(values.iter().all(|value| value != IN_FLIGHT), "{span:?} is being received");
        values
    }

    /// Runs to the next wait that has to wait. Returns `true` if a step was done.
    fn run(&mut self) -> bool {
        let before = self.next;
        while let Some(step) = self.schedule.steps().get(self.next).copied() {
            match step {
                ScheduleStep::Wait if !(self.sends.is_empty() && self.receives.is_empty()) => break,
                ScheduleStep::Wait => {}
                ScheduleStep::Send { to, span } => {
                    let values = self.settled(span);
                    self.sends.push_back((to, span, values));
                }
                ScheduleStep::Receive { from, span } => {
                    self.at(span).fill(IN_FLIGHT.to_owned());
                    self.receives.push_back((from, span));
                }
                ScheduleStep::Copy { from, to } => {
                    let values = self.settled(from);
                    self.settled(to);
                    self.at(to).clone_from_slice(&values);
                }
                ScheduleStep::FoldIntoLeft { left, right } => self.fold(left, right, left),
                ScheduleStep::FoldIntoRight { left, right } => self.fold(left, right, right),
            }
            self.next += 1;
        }
        self.next > before
    }

    fn fold(&mut self, left: Span, right: Span, into: Span) {
        let (left, right) = (self.settled(left), self.settled(right));
        assert_eq!(left.len(), right.len());
        let folded = left.iter().zip(&right).map(|(left, right)| format!("({left} {right})"));
        let folded: Vec<String> = folded.collect();
        self.at(into).clone_from_slice(&folded);
    }
}

/// Runs all ranks to their ends and returns their outputs.
fn carry_out(mut ranks: Vec<Rank>) -> Vec<Vec<String>> {
    loop {
        let mut moved = false;
        for rank in &mut ranks {
            moved |= rank.run();
        }
        for from in 0..ranks.len() {
            for to in 0..ranks.len() {
                moved |= deliver(&mut ranks, from, to);
            }
        }
        if !moved {
            break;
        }
    }
    for (number, rank) in ranks.iter().enumerate() {
        let steps = rank.schedule.steps();
        assert_eq!(rank.next, steps.len(), "rank {number} hangs at {:?}", steps.get(rank.next));
        assert!(rank.sends.is_empty() && rank.receives.is_empty(), "rank {number} did not wait");
    }
    ranks.into_iter().map(|rank| rank.places[1].clone()).collect()
}

/// Delivers the oldest message from one rank to another, if both are ready.
fn deliver(ranks: &mut [Rank], from: usize, to: usize) -> bool {
    let send = ranks[from].sends.iter().position(|(peer, ..)| *peer == to);
    let receive = ranks[to].receives.iter().position(|(peer, _)| *peer == from);
    let (Some(send), Some(receive)) = (send, receive) else { return false };
    let Some((_, source, values)) = ranks[from].sends.remove(send) else { return false };
    let Some((_, target)) = ranks[to].receives.remove(receive) else { return false };
    assert_eq!(ranks[from].at(source), values, "what is being sent has changed");
    assert_eq!(values.len(), target.len, "from {from} to {to}");
    ranks[to].at(target).clone_from_slice(&values);
    true
}

/// Returns element `index` of rank `rank`.
fn value(rank: usize, index: usize) -> String {
    format!("{rank}.{index}")
}

fn values(rank: usize, len: usize) -> Vec<String> {
    (0..len).map(|index| value(rank, index)).collect()
}

fn members(size: usize) -> impl Iterator<Item = Member> {
    (0..size).map(move |rank| Member { rank, size })
}

/// Carries out a plan that works in place on the values of each rank.
fn in_place(size: usize, len: usize, plan: impl Fn(Member) -> Schedule) -> Vec<Vec<String>> {
    let rank = |member: Member| Rank::new(plan(member), Vec::new(), values(member.rank, len));
    carry_out(members(size).map(rank).collect())
}

/// Folds in the documented order: neighbours first.
fn folded_in_pairs(mut operands: Vec<String>) -> String {
    while operands.len() > 1 {
        let pair = |pair: &[String]| match pair {
            [left, right] => format!("({left} {right})"),
            rest => rest.concat(),
        };
        operands = operands.chunks(2).map(pair).collect();
    }
    operands.concat()
}

fn reduced(size: usize, index: usize) -> String {
    folded_in_pairs((0..size).map(|rank| value(rank, index)).collect())
}

/// Returns pairs of a number of ranks and a length.
fn cases() -> impl Iterator<Item = (usize, usize)> {
    (1..=17).flat_map(|size| [0, 1, 18].map(|len| (size, len)))
}

#[test]
fn barriers_end_only_when_all_have_begun() {
    for size in 1..=19 {
        for radix in [2, 4, 8] {
            in_place(size, 0, |member| barrier::by_tree(member, radix));
        }
        in_place(size, 0, barrier::by_dissemination);
        for late in 0..size {
            let mut ranks: Vec<Rank> = members(size)
                .map(|member| Rank::new(super::barrier(member), Vec::new(), Vec::new()))
                .collect();
            // The late one does nothing at all.
            for _ in 0..3 * size {
                for (number, rank) in ranks.iter_mut().enumerate() {
                    if number != late {
                        rank.run();
                    }
                }
                for (from, to) in (0..size).flat_map(|from| (0..size).map(move |to| (from, to))) {
                    deliver(&mut ranks, from, to);
                }
            }
            for (number, rank) in ranks.iter().enumerate() {
                let has_ended = rank.next == rank.schedule.steps().len();
                assert!(number == late || !has_ended, "{number} of {size} without {late}");
            }
        }
    }
}

#[test]
fn a_broadcast_reaches_all() {
    for (size, len) in cases() {
        for (root, radix) in (0..size).flat_map(|root| [2, 8].map(|radix| (root, radix))) {
            let all = in_place(size, len, |member| broadcast::by_tree(member, root, len, radix));
            assert!(all.iter().all(|output| *output == values(root, len)));
        }
    }
}

#[test]
fn reductions_fold_in_one_order_whatever_the_algorithm() {
    for (size, len) in cases() {
        let expected: Vec<String> = (0..len).map(|index| reduced(size, index)).collect();
        let all = |plan: &dyn Fn(Member) -> Schedule| {
            let outputs = in_place(size, len, plan);
            assert!(outputs.iter().all(|output| *output == expected), "{size} {len}");
        };
        all(&|member| reduce::allreduce_by_tree(member, len, 2));
        all(&|member| reduce::allreduce_by_tree(member, len, 8));
        all(&|member| reduce::allreduce_by_segments(member, len));
        all(&|member| reduce::allreduce_directly(member, len));
        for root in 0..size {
            let one = |plan: &dyn Fn(Member) -> Schedule| {
                let outputs = in_place(size, len, plan);
                for (rank, output) in outputs.into_iter().enumerate() {
                    let unchanged = values(rank, len);
                    let expected = if rank == root { &expected } else { &unchanged };
                    assert_eq!(output, *expected, "{rank} of {size}, root {root}");
                }
            };
            one(&|member| reduce::reduce_by_tree(member, root, len, 2));
            one(&|member| reduce::reduce_by_tree(member, root, len, 8));
            one(&|member| reduce::reduce_by_segments(member, root, len));
        }
    }
}

#[test]
fn scans_fold_from_left_to_right() {
    for (size, len) in cases() {
        let prefix = |rank: usize, index| {
            let operands = (0..=rank).map(|rank| value(rank, index));
            operands.reduce(|left, right| format!("({left} {right})")).unwrap_or_default()
        };
        for plan in [scan::at_rank_0, scan::by_segments] {
            let with = in_place(size, len, |member| plan(member, len, scan::Prefix::Inclusive));
            let without = in_place(size, len, |member| plan(member, len, scan::Prefix::Exclusive));
            for (rank, index) in (0..size).flat_map(|rank| (0..len).map(move |i| (rank, i))) {
                assert_eq!(with[rank][index], prefix(rank, index));
                let expected = rank.checked_sub(1).map(|rank| prefix(rank, index));
                assert_eq!(without[rank][index], expected.unwrap_or_else(|| value(0, index)));
            }
        }
    }
}

/// Lengths that differ by rank, some of them 0.
fn counts(size: usize) -> Vec<usize> {
    (0..size).map(|rank| (rank * 5 + 2) % 4).collect()
}

fn blocks(size: usize) -> Blocks {
    Blocks::of_counts(counts(size)).expect("few elements")
}

fn all_values(size: usize) -> Vec<String> {
    counts(size).iter().enumerate().flat_map(|(rank, len)| values(rank, *len)).collect()
}

#[test]
fn gathers_and_scatters_move_every_block_to_its_place() {
    for (size, root) in (1..=12).flat_map(|size| (0..size).map(move |root| (size, root))) {
        let (blocks, counts, all) = (blocks(size), counts(size), all_values(size));
        let empty = || vec![String::new(); all.len()];
        let gathered = carry_out(
            members(size)
                .map(|member| {
                    let len = counts[member.rank];
                    let plan = gather::gather(member, root, len, &blocks);
                    Rank::new(plan, values(member.rank, len), empty())
                })
                .collect(),
        );
        assert_eq!(gathered[root], all);
        let scattered = carry_out(
            members(size)
                .map(|member| {
                    let len = counts[member.rank];
                    let plan = gather::scatter(member, root, len, &blocks);
                    let input = if member.rank == root { all.clone() } else { Vec::new() };
                    Rank::new(plan, input, vec![String::new(); len])
                })
                .collect(),
        );
        for (rank, output) in scattered.into_iter().enumerate() {
            assert_eq!(output, values(rank, counts[rank]));
        }
    }
}

#[test]
fn an_allgather_gives_all_blocks_to_all() {
    for size in 1..=12 {
        let (blocks, counts, all) = (blocks(size), counts(size), all_values(size));
        let check = |plan: &dyn Fn(Member) -> Schedule| {
            let rank = |member: Member| {
                let input = values(member.rank, counts[member.rank]);
                Rank::new(plan(member), input, vec![String::new(); all.len()])
            };
            let outputs = carry_out(members(size).map(rank).collect());
            assert!(outputs.iter().all(|output| *output == all));
        };
        check(&|member| gather::allgather_directly(member, &blocks));
        check(&|member| gather::allgather_by_tree(member, &blocks, 8));
        check(&|member| gather::allgather_by_tree(member, &blocks, 2));
    }
}

#[test]
fn an_alltoall_transposes_blocks() {
    for size in 1..=12 {
        let len = |from: usize, to: usize| (from + 2 * to) % 3;
        let outputs = carry_out(
            members(size)
                .map(|member| {
                    let mine = member.rank;
                    let sent = Blocks::of_counts((0..size).map(|to| len(mine, to)));
                    let received = Blocks::of_counts((0..size).map(|from| len(from, mine)));
                    let (sent, received) = sent.zip(received).expect("few elements");
                    let output = vec![String::new(); received.total()];
                    let block = |to| (0..len(mine, to)).map(move |i| format!("{mine}-{to}.{i}"));
                    let input = (0..size).flat_map(block).collect();
                    Rank::new(alltoall(member, &sent, &received), input, output)
                })
                .collect(),
        );
        for (to, output) in outputs.into_iter().enumerate() {
            let block = |from| (0..len(from, to)).map(move |index| format!("{from}-{to}.{index}"));
            assert_eq!(output, (0..size).flat_map(block).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_reduce_scatter_gives_each_rank_its_block() {
    for size in 1..=12 {
        let (blocks, counts) = (blocks(size), counts(size));
        let check = |plan: &dyn Fn(Member) -> Schedule| {
            let rank = |member: Member| {
                let output = vec![String::new(); counts[member.rank]];
                Rank::new(plan(member), values(member.rank, blocks.total()), output)
            };
            let outputs = carry_out(members(size).map(rank).collect());
            let all: Vec<String> = (0..blocks.total()).map(|index| reduced(size, index)).collect();
            assert_eq!(outputs.concat(), all);
        };
        check(&|member| reduce::reduce_scatter_directly(member, &blocks));
        check(&|member| reduce::reduce_scatter_by_tree(member, &blocks, 8));
        check(&|member| reduce::reduce_scatter_by_tree(member, &blocks, 2));
    }
}
