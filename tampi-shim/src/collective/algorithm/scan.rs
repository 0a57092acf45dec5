//! Prefix reductions: scan and exscan.
//!
//! All algorithms fold from left to right, `((x0 op x1) op x2) op ...`: the bits are those of a
//! serial loop.

use super::{Blocks, Member};
use crate::collective::schedule::{BufferRole, Schedule, Span};

/// Prefix that a rank receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefix {
    /// Includes the operand of the rank.
    Inclusive,
    /// Excludes the operand of the rank; rank 0 keeps its operand.
    Exclusive,
}

/// Appends the steps that replace the operands of all ranks by their inclusive prefixes.
fn fold_prefixes(schedule: &mut Schedule, spans: &[Span]) {
    for pair in spans.windows(2) {
        schedule.fold_into_right(pair[0], pair[1]);
    }
}

impl Prefix {
    /// Returns the span of the result of rank `rank`, if it has one.
    fn of(self, spans: &[Span], rank: usize) -> Option<Span> {
        match self {
            Prefix::Inclusive => Some(spans[rank]),
            Prefix::Exclusive => rank.checked_sub(1).map(|before| spans[before]),
        }
    }
}

/// Builds a scan in which rank 0 folds for all ranks: 2 (size - 1) messages.
pub(super) fn at_rank_0(member: Member, len: usize, prefix: Prefix) -> Schedule {
    let mut schedule = Schedule::default();
    let mine = Span::output(0, len);
    if member.rank == 0 {
        let mut spans = vec![mine; member.size];
        for from in member.others() {
            spans[from] = schedule.take_scratch(len);
            schedule.receive(from, spans[from]);
        }
        schedule.wait();
        fold_prefixes(&mut schedule, &spans);
        for to in member.others() {
            prefix.of(&spans, to).into_iter().for_each(|span| schedule.send(to, span));
        }
    } else {
        schedule.send(0, mine);
        schedule.wait();
        schedule.receive(0, mine);
    }
    schedule.wait();
    schedule
}

/// Builds a scan in which each rank folds one segment for all ranks.
pub(super) fn by_segments(member: Member, len: usize, prefix: Prefix) -> Schedule {
    let mut schedule = Schedule::default();
    let blocks = Blocks::evenly(len, member.size);
    let mine = blocks.span(member.rank, BufferRole::Output);
    let mut spans = vec![mine; member.size];
    if prefix == Prefix::Exclusive {
        spans[member.rank] = schedule.take_scratch(mine.len);
        schedule.copy(mine, spans[member.rank]);
    }
    for from in member.others() {
        spans[from] = schedule.take_scratch(mine.len);
        schedule.receive(from, spans[from]);
    }
    for to in member.others() {
        schedule.send(to, blocks.span(to, BufferRole::Output));
    }
    schedule.wait();
    fold_prefixes(&mut schedule, &spans);
    if prefix == Prefix::Inclusive || member.rank > 0 {
        for from in member.others() {
            schedule.receive(from, blocks.span(from, BufferRole::Output));
        }
    }
    for to in member.others() {
        prefix.of(&spans, to).into_iter().for_each(|span| schedule.send(to, span));
    }
    if prefix == Prefix::Exclusive {
        prefix.of(&spans, member.rank).into_iter().for_each(|span| schedule.copy(span, mine));
    }
    schedule.wait();
    schedule
}
