//! All to all: block `j` of rank `i` becomes block `i` of rank `j`.

use super::{Blocks, Member};
use crate::collective::schedule::{BufferRole, Schedule};

/// Exchanges blocks between every pair directly; each rank begins with another peer.
pub(crate) fn alltoall(member: Member, sent: &Blocks, received: &Blocks) -> Schedule {
    let mut schedule = Schedule::default();
    for from in member.others() {
        schedule.receive(from, received.span(from, BufferRole::Output));
    }
    for to in member.others() {
        schedule.send(to, sent.span(to, BufferRole::Input));
    }
    let own = member.rank;
    schedule.copy(sent.span(own, BufferRole::Input), received.span(own, BufferRole::Output));
    schedule.wait();
    schedule
}
