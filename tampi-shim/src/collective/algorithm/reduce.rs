//! Reductions: reduce, allreduce, reduce_scatter.
//!
//! All algorithms fold values as `Schedule::fold_pairs` does: ranks 0 and 1, 2 and 3, ..., then the
//! results of (0, 1) and (2, 3), and so on. An operand without a partner is folded in a later
//! round. So the bits depend on the number of ranks alone, and operands stay in the order of ranks.

use super::{Blocks, Member, broadcast};
use crate::collective::schedule::{BufferRole, Schedule, Span};
use crate::collective::tree::Tree;

/// Appends the steps that fold up a tree into `value`, which holds this rank's operand and at the
/// root ends with the result. The values of all children are received at once and then folded.
fn up(schedule: &mut Schedule, tree: Tree, rank: usize, value: Span) {
    let position = tree.position(rank);
    let mut families = Vec::new();
    for family in &position.families {
        let spans = family.members.iter().enumerate().map(|(index, member)| {
            if index == family.own {
                return value;
            }
            let span = schedule.take_scratch(value.len);
            schedule.receive(*member, span);
            span
        });
        families.push((spans.collect::<Vec<_>>(), family.own));
    }
    schedule.wait();
    for (mut spans, own) in families {
        schedule.fold_pairs(&mut spans, own);
    }
    if let Some(parent) = position.parent {
        schedule.send(parent, value);
        schedule.wait();
    }
}

/// Returns a span with this rank's operand that may be written: the output at the root and at ranks
/// that fold nothing, otherwise a copy.
fn operand(schedule: &mut Schedule, tree: Tree, rank: usize, len: usize) -> Span {
    let output = Span::output(0, len);
    if rank == tree.root || tree.position(rank).families.is_empty() {
        return output;
    }
    let copy = schedule.take_scratch(len);
    schedule.copy(output, copy);
    copy
}

pub(super) fn reduce_by_tree(member: Member, root: usize, len: usize, radix: usize) -> Schedule {
    let mut schedule = Schedule::default();
    let tree = Tree { size: member.size, root, radix };
    let value = operand(&mut schedule, tree, member.rank, len);
    up(&mut schedule, tree, member.rank, value);
    schedule
}

pub(super) fn allreduce_by_tree(member: Member, len: usize, radix: usize) -> Schedule {
    let mut schedule = Schedule::default();
    let tree = Tree { size: member.size, root: 0, radix };
    up(&mut schedule, tree, member.rank, Span::output(0, len));
    broadcast::down(&mut schedule, tree, member.rank, Span::output(0, len));
    schedule
}

/// Builds an allreduce in which every rank sends all its elements to every rank and folds all: one
/// message deep.
pub(super) fn allreduce_directly(member: Member, len: usize) -> Schedule {
    let mut schedule = Schedule::default();
    let mine = Span::output(0, len);
    let mut spans = vec![mine; member.size];
    for from in member.others() {
        spans[from] = schedule.take_scratch(len);
        schedule.receive(from, spans[from]);
    }
    member.others().for_each(|to| schedule.send(to, mine));
    schedule.wait();
    schedule.fold_pairs(&mut spans, member.rank);
    schedule
}

/// Appends the steps that send every rank its block of `whole`, and fold the arriving operands of
/// the own block into `value`, which holds this rank's operand by the time messages have arrived.
fn fold_own_block(
    schedule: &mut Schedule,
    member: Member,
    whole: BufferRole,
    blocks: &Blocks,
    value: Span,
) {
    let mut spans = vec![value; member.size];
    for from in member.others() {
        spans[from] = schedule.take_scratch(value.len);
        schedule.receive(from, spans[from]);
    }
    for to in member.others() {
        schedule.send(to, blocks.span(to, whole));
    }
    schedule.wait();
    schedule.fold_pairs(&mut spans, member.rank);
}

/// Builds a reduce in which each rank folds one segment, and the root gathers them: every rank
/// sends and folds as much as any other.
pub(super) fn reduce_by_segments(member: Member, root: usize, len: usize) -> Schedule {
    let mut schedule = Schedule::default();
    let blocks = Blocks::evenly(len, member.size);
    let mut mine = blocks.span(member.rank, BufferRole::Output);
    if member.rank != root {
        let copy = schedule.take_scratch(mine.len);
        schedule.copy(mine, copy);
        mine = copy;
    }
    fold_own_block(&mut schedule, member, BufferRole::Output, &blocks, mine);
    if member.rank == root {
        for from in member.others() {
            schedule.receive(from, blocks.span(from, BufferRole::Output));
        }
    } else {
        schedule.send(root, mine);
    }
    schedule.wait();
    schedule
}

/// Builds an allreduce in which each rank folds one segment and sends it to all.
pub(super) fn allreduce_by_segments(member: Member, len: usize) -> Schedule {
    let mut schedule = Schedule::default();
    let blocks = Blocks::evenly(len, member.size);
    let mine = blocks.span(member.rank, BufferRole::Output);
    fold_own_block(&mut schedule, member, BufferRole::Output, &blocks, mine);
    for from in member.others() {
        schedule.receive(from, blocks.span(from, BufferRole::Output));
    }
    member.others().for_each(|to| schedule.send(to, mine));
    schedule.wait();
    schedule
}

/// Builds a reduce-scatter in which each rank folds its block.
pub(super) fn reduce_scatter_directly(member: Member, blocks: &Blocks) -> Schedule {
    let mut schedule = Schedule::default();
    let mine = Span::output(0, blocks.len(member.rank));
    schedule.copy(blocks.span(member.rank, BufferRole::Input), mine);
    fold_own_block(&mut schedule, member, BufferRole::Input, blocks, mine);
    schedule
}

/// Builds a reduce-scatter up a tree, with the blocks sent directly from rank 0: 2 (size - 1)
/// messages.
pub(super) fn reduce_scatter_by_tree(member: Member, blocks: &Blocks, radix: usize) -> Schedule {
    let mut schedule = Schedule::default();
    let tree = Tree { size: member.size, root: 0, radix };
    let value = schedule.take_scratch(blocks.total());
    schedule.copy(Span::input(0, blocks.total()), value);
    up(&mut schedule, tree, member.rank, value);
    let mine = Span::output(0, blocks.len(member.rank));
    if member.rank == 0 {
        for to in member.others() {
            let block = blocks.span(to, BufferRole::Scratch);
            schedule.send(to, Span { start: value.start + block.start, ..block });
        }
        schedule.copy(Span { len: mine.len, ..value }, mine);
    } else {
        schedule.receive(0, mine);
    }
    schedule.wait();
    schedule
}
