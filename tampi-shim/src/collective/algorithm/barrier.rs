//! Barriers: messages without data.

use super::Member;
use crate::collective::schedule::{Schedule, Span};
use crate::collective::tree::Tree;

/// Builds a barrier up a tree and down again: 2 (size - 1) messages, the fewest possible.
pub(super) fn by_tree(member: Member, radix: usize) -> Schedule {
    let mut schedule = Schedule::default();
    let nothing = Span::output(0, 0);
    let position = Tree { size: member.size, root: 0, radix }.position(member.rank);
    position.children().for_each(|child| schedule.receive(child, nothing));
    schedule.wait();
    if let Some(parent) = position.parent {
        schedule.send(parent, nothing);
        schedule.receive(parent, nothing);
        schedule.wait();
    }
    position.children().rev().for_each(|child| schedule.send(child, nothing));
    schedule.wait();
    schedule
}

/// Builds a barrier by dissemination: in round `k` each rank sends a message to the rank `2^k`
/// further. Half as deep as a tree, with size * log2(size) messages.
pub(super) fn by_dissemination(Member { rank, size }: Member) -> Schedule {
    let mut schedule = Schedule::default();
    let nothing = Span::output(0, 0);
    let mut distance = 1;
    while distance < size {
        schedule.send((rank + distance) % size, nothing);
        schedule.receive((rank + size - distance) % size, nothing);
        schedule.wait();
        distance *= 2;
    }
    schedule
}
