//! Gather, scatter and allgather: blocks of the ranks in one buffer of all ranks.

use super::{Blocks, Member};
use crate::collective::algorithm::broadcast;
use crate::collective::schedule::{BufferRole, Schedule, Span};
use crate::collective::tree::Tree;

/// Builds a gather directly to the root, which receives in place: every byte is sent once. The root
/// uses `blocks`, the other ranks `len`.
pub(crate) fn gather(member: Member, root: usize, len: usize, blocks: &Blocks) -> Schedule {
    let mut schedule = Schedule::default();
    to_root(&mut schedule, member, root, len, blocks);
    schedule
}

fn to_root(schedule: &mut Schedule, member: Member, root: usize, len: usize, blocks: &Blocks) {
    if member.rank == root {
        for from in member.others() {
            schedule.receive(from, blocks.span(from, BufferRole::Output));
        }
        schedule.copy(Span::input(0, len), blocks.span(root, BufferRole::Output));
    } else {
        schedule.send(root, Span::input(0, len));
    }
    schedule.wait();
}

/// Builds a scatter directly from the root. The root uses `blocks`, the other ranks `len`.
pub(crate) fn scatter(member: Member, root: usize, len: usize, blocks: &Blocks) -> Schedule {
    let mut schedule = Schedule::default();
    if member.rank == root {
        for to in member.others() {
            schedule.send(to, blocks.span(to, BufferRole::Input));
        }
        schedule.copy(blocks.span(root, BufferRole::Input), Span::output(0, len));
    } else {
        schedule.receive(root, Span::output(0, len));
    }
    schedule.wait();
    schedule
}

/// Builds an allgather from every rank to every rank: one message deep, and every byte is copied
/// once for each reader.
pub(super) fn allgather_directly(member: Member, blocks: &Blocks) -> Schedule {
    let mut schedule = Schedule::default();
    let mine = Span::input(0, blocks.len(member.rank));
    for from in member.others() {
        schedule.receive(from, blocks.span(from, BufferRole::Output));
    }
    for to in member.others() {
        schedule.send(to, mine);
    }
    schedule.copy(mine, blocks.span(member.rank, BufferRole::Output));
    schedule.wait();
    schedule
}

/// Builds an allgather to rank 0, and from there down a tree: 2 (size - 1) messages.
pub(super) fn allgather_by_tree(member: Member, blocks: &Blocks, radix: usize) -> Schedule {
    let mut schedule = Schedule::default();
    to_root(&mut schedule, member, 0, blocks.len(member.rank), blocks);
    let tree = Tree { size: member.size, root: 0, radix };
    broadcast::down(&mut schedule, tree, member.rank, Span::output(0, blocks.total()));
    schedule
}
