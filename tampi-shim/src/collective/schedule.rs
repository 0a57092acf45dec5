//! Schedules: the part of one rank in one collective, as a list of steps over three buffers.
//!
//! The algorithms are pure functions that return a schedule; the machine carries it out. Steps are
//! started in order. Messages are under way from their step to the next [`ScheduleStep::Wait`], so
//! between the two no step may touch memory that they write, nor write memory that they read.
//! Messages from one rank to another arrive in the order they were sent.

use std::cell::RefCell;

/// Role of a buffer in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferRole {
    /// Buffer of the caller that is only read. Operations that work in place have none.
    Input,
    /// Buffer of the caller that is read and written.
    Output,
    /// Buffer of the collective itself.
    Scratch,
}

/// Consecutive elements of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) role: BufferRole,
    pub(crate) start: usize,
    pub(crate) len: usize,
}

impl Span {
    pub(crate) fn input(start: usize, len: usize) -> Self {
        Span { role: BufferRole::Input, start, len }
    }

    pub(crate) fn output(start: usize, len: usize) -> Self {
        Span { role: BufferRole::Output, start, len }
    }
}

/// Step of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScheduleStep {
    /// Starts to send a span.
    Send { to: usize, span: Span },
    /// Starts to receive a message of exactly this length.
    Receive { from: usize, span: Span },
    /// Waits for all messages started before.
    Wait,
    /// Copies a span to another of the same length.
    Copy { from: Span, to: Span },
    /// Folds two spans of equal lengths into the right one: `right = left op right`.
    FoldIntoRight { left: Span, right: Span },
    /// Folds two spans of equal lengths into the left one: `left = left op right`.
    FoldIntoLeft { left: Span, right: Span },
}

/// Steps of one rank, and the number of scratch elements that they use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    steps: Vec<ScheduleStep>,
    scratch: usize,
}

/// Number of lists of steps that each thread keeps for its next collectives.
const SPARE: usize = 256;
/// Longest list of steps that is kept.
const LONGEST_SPARE: usize = 64;

thread_local! {
    static SPARES: RefCell<Vec<Vec<ScheduleStep>>> = const { RefCell::new(Vec::new()) };
}

impl Default for Schedule {
    fn default() -> Self {
        let spare = SPARES.try_with(|spares| spares.borrow_mut().pop());
        Schedule { steps: spare.ok().flatten().unwrap_or_default(), scratch: 0 }
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        let mut steps = std::mem::take(&mut self.steps);
        steps.clear();
        // Without the list of the thread, which ends, the steps are freed.
        let _ = SPARES.try_with(|spares| {
            let mut spares = spares.borrow_mut();
            if spares.len() < SPARE && steps.capacity() <= LONGEST_SPARE {
                spares.push(steps);
            }
        });
    }
}

impl Schedule {
    pub(crate) fn steps(&self) -> &[ScheduleStep] {
        &self.steps
    }

    /// Returns the number of scratch elements.
    pub(crate) fn scratch(&self) -> usize {
        self.scratch
    }

    /// Reserves `len` more scratch elements.
    pub(crate) fn take_scratch(&mut self, len: usize) -> Span {
        let start = self.scratch;
        self.scratch += len;
        Span { role: BufferRole::Scratch, start, len }
    }

    pub(crate) fn send(&mut self, to: usize, span: Span) {
        self.steps.push(ScheduleStep::Send { to, span });
    }

    pub(crate) fn receive(&mut self, from: usize, span: Span) {
        self.steps.push(ScheduleStep::Receive { from, span });
    }

    pub(crate) fn wait(&mut self) {
        if self.steps.last().is_some_and(|last| *last != ScheduleStep::Wait) {
            self.steps.push(ScheduleStep::Wait);
        }
    }

    pub(crate) fn copy(&mut self, from: Span, to: Span) {
        self.steps.push(ScheduleStep::Copy { from, to });
    }

    pub(crate) fn fold_into_left(&mut self, left: Span, right: Span) {
        self.steps.push(ScheduleStep::FoldIntoLeft { left, right });
    }

    pub(crate) fn fold_into_right(&mut self, left: Span, right: Span) {
        self.steps.push(ScheduleStep::FoldIntoRight { left, right });
    }

    /// Folds values in pairs of neighbours, then pairs of pairs, and so on, into the span of value
    /// `own`.
    ///
    /// `spans[i]` holds the value of the `i`-th rank or aligned block of ranks. All reductions fold
    /// in this order, so every algorithm gives the same bits.
    pub(crate) fn fold_pairs(&mut self, spans: &mut [Span], own: usize) {
        let mut distance = 1;
        while distance < spans.len() {
            for first in (0..spans.len() - distance).step_by(2 * distance) {
                let (left, right) = (spans[first], spans[first + distance]);
                if (first + distance..first + 2 * distance).contains(&own) {
                    self.fold_into_right(left, right);
                    spans[first] = right;
                } else {
                    self.fold_into_left(left, right);
                }
            }
            distance *= 2;
        }
    }
}
