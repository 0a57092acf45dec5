//! Choice of the algorithm of an operation.
//!
//! All ranks must choose the same algorithm, so a choice depends only on numbers that all ranks
//! know: of ranks and of bytes.

use super::scan::Prefix;
use super::{
    Blocks, Member, barrier as barriers, broadcast as broadcasts, gather, reduce as reductions,
    scan as scans,
};
use crate::collective::schedule::Schedule;

/// Length from which on the copies of a message cost more than the message itself, in bytes.
const LONG: usize = 32 << 10;

/// Radix of trees for short messages, whose cost does not depend on their length: up to 8 ranks are
/// two messages deep. With more ranks than cores the fewest messages win: on 2 cores a barrier of 8
/// ranks takes 9 us with this radix, 14 us with radix 2, and 14 us by dissemination, which has 24
/// messages instead of 14.
const WIDE: usize = 8;

/// Radix of trees for long messages, which take time to send: the root sends log2(size) of them.
const NARROW: usize = 2;

fn radix(bytes: usize) -> usize {
    if bytes < LONG { WIDE } else { NARROW }
}

fn is_long(member: Member, len: usize, element: usize) -> bool {
    len * element >= LONG && len >= member.size
}

pub(crate) fn barrier(member: Member) -> Schedule {
    if member.size == 2 {
        barriers::by_dissemination(member)
    } else {
        barriers::by_tree(member, WIDE)
    }
}

pub(crate) fn broadcast(member: Member, root: usize, len: usize, element: usize) -> Schedule {
    broadcasts::by_tree(member, root, len, radix(len * element))
}

pub(crate) fn allgather(member: Member, blocks: &Blocks, element: usize) -> Schedule {
    if member.size == 2 || blocks.total() * element >= LONG {
        gather::allgather_directly(member, blocks)
    } else {
        gather::allgather_by_tree(member, blocks, WIDE)
    }
}

pub(crate) fn reduce(member: Member, root: usize, len: usize, element: usize) -> Schedule {
    if is_long(member, len, element) {
        reductions::reduce_by_segments(member, root, len)
    } else {
        reductions::reduce_by_tree(member, root, len, radix(len * element))
    }
}

pub(crate) fn allreduce(member: Member, len: usize, element: usize) -> Schedule {
    if is_long(member, len, element) {
        reductions::allreduce_by_segments(member, len)
    } else if member.size == 2 {
        reductions::allreduce_directly(member, len)
    } else {
        reductions::allreduce_by_tree(member, len, radix(len * element))
    }
}

pub(crate) fn reduce_scatter(member: Member, blocks: &Blocks, element: usize) -> Schedule {
    if member.size == 2 || blocks.total() * element >= LONG {
        reductions::reduce_scatter_directly(member, blocks)
    } else {
        reductions::reduce_scatter_by_tree(member, blocks, WIDE)
    }
}

pub(crate) fn scan(member: Member, len: usize, element: usize) -> Schedule {
    prefixes(member, len, element, Prefix::Inclusive)
}

pub(crate) fn exscan(member: Member, len: usize, element: usize) -> Schedule {
    prefixes(member, len, element, Prefix::Exclusive)
}

fn prefixes(member: Member, len: usize, element: usize, prefix: Prefix) -> Schedule {
    if is_long(member, len, element) {
        scans::by_segments(member, len, prefix)
    } else {
        scans::at_rank_0(member, len, prefix)
    }
}
