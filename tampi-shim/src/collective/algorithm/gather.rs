//! Gather, scatter and allgather: blocks of the ranks in one buffer of all.

use super::{Blocks, Member};
use crate::collective::algorithm::broadcast;
use crate::collective::schedule::{Place, Schedule, Span};
use crate::collective::tree::Tree;

/// Straight to the root, which receives in place: every byte travels once. `blocks` is read at the
/// root only, `len` elsewhere.
pub(crate) fn gather(member: Member, root: usize, len: usize, blocks: &Blocks) -> Schedule {
    let mut schedule = Schedule::default();
    to_root(&mut schedule, member, root, len, blocks);
    schedule
}

fn to_root(schedule: &mut Schedule, member: Member, root: usize, len: usize, blocks: &Blocks) {
    if member.rank == root {
        for from in member.others() {
            schedule.receive(from, blocks.span(from, Place::Output));
        }
        schedule.copy(Span::input(0, len), blocks.span(root, Place::Output));
    } else {
        schedule.send(root, Span::input(0, len));
    }
    schedule.wait();
}

/// Straight from the root. `blocks` is read at the root only, `len` elsewhere.
pub(crate) fn scatter(member: Member, root: usize, len: usize, blocks: &Blocks) -> Schedule {
    let mut schedule = Schedule::default();
    if member.rank == root {
        for to in member.others() {
            schedule.send(to, blocks.span(to, Place::Input));
        }
        schedule.copy(blocks.span(root, Place::Input), Span::output(0, len));
    } else {
        schedule.receive(root, Span::output(0, len));
    }
    schedule.wait();
    schedule
}

/// Everybody to everybody: one message deep, and every byte is copied once a reader.
pub(super) fn allgather_directly(member: Member, blocks: &Blocks) -> Schedule {
    let mut schedule = Schedule::default();
    let mine = Span::input(0, blocks.len(member.rank));
    for from in member.others() {
        schedule.receive(from, blocks.span(from, Place::Output));
    }
    for to in member.others() {
        schedule.send(to, mine);
    }
    schedule.copy(mine, blocks.span(member.rank, Place::Output));
    schedule.wait();
    schedule
}

/// To rank 0, and all of it down a tree: 2 (size - 1) messages.
pub(super) fn allgather_by_tree(member: Member, blocks: &Blocks, radix: usize) -> Schedule {
    let mut schedule = Schedule::default();
    to_root(&mut schedule, member, 0, blocks.len(member.rank), blocks);
    let tree = Tree { size: member.size, root: 0, radix };
    broadcast::down(&mut schedule, tree, member.rank, Span::output(0, blocks.total()));
    schedule
}
