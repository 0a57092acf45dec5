//! Broadcast.

use super::Member;
use crate::collective::schedule::{Schedule, Span};
use crate::collective::tree::Tree;

/// Builds a broadcast down a tree, the largest blocks first.
pub(super) fn by_tree(member: Member, root: usize, len: usize, radix: usize) -> Schedule {
    let mut schedule = Schedule::default();
    down(&mut schedule, Tree { size: member.size, root, radix }, member.rank, Span::output(0, len));
    schedule
}

/// Appends the steps that send `span` of the root to the same span of all ranks.
pub(super) fn down(schedule: &mut Schedule, tree: Tree, rank: usize, span: Span) {
    let position = tree.position(rank);
    if let Some(parent) = position.parent {
        schedule.receive(parent, span);
        schedule.wait();
    }
    position.children().rev().for_each(|child| schedule.send(child, span));
    schedule.wait();
}
