//! What one rank does in one collective, as data: a list of steps over three buffers.
//!
//! The algorithms are pure functions that return a schedule; the machine carries it out. Steps
//! are started in order. Messages are under way from their step to the next [`Step::Wait`], so
//! between the two nobody may touch what they write, nor write what they read. Messages from one
//! rank to another arrive in the order they were sent.

use smallvec::SmallVec;

/// One of the buffers of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The caller's, only read. May be missing where the operation works in place.
    Input,
    /// The caller's, read and written.
    Output,
    /// The collective's own.
    Scratch,
}

/// Consecutive elements of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) place: Place,
    pub(crate) start: usize,
    pub(crate) len: usize,
}

impl Span {
    pub(crate) fn input(start: usize, len: usize) -> Self {
        Span { place: Place::Input, start, len }
    }

    pub(crate) fn output(start: usize, len: usize) -> Self {
        Span { place: Place::Output, start, len }
    }
}

/// What a rank does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Starts to send a span.
    Send { to: usize, span: Span },
    /// Starts to receive a message of exactly this length.
    Receive { from: usize, span: Span },
    /// Waits for all messages that were started.
    Wait,
    /// `to = from`, of equal lengths.
    Copy { from: Span, to: Span },
    /// `right = left op right`, of equal lengths.
    FoldIntoRight { left: Span, right: Span },
    /// `left = left op right`, of equal lengths.
    FoldIntoLeft { left: Span, right: Span },
}

/// The steps of one rank, and the elements of scratch that they use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedule {
    steps: SmallVec<[Step; 16]>,
    scratch: usize,
}

impl Schedule {
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Elements of scratch.
    pub(crate) fn scratch(&self) -> usize {
        self.scratch
    }

    /// Takes `len` more elements of scratch.
    pub(crate) fn take_scratch(&mut self, len: usize) -> Span {
        let start = self.scratch;
        self.scratch += len;
        Span { place: Place::Scratch, start, len }
    }

    pub(crate) fn send(&mut self, to: usize, span: Span) {
        self.steps.push(Step::Send { to, span });
    }

    pub(crate) fn receive(&mut self, from: usize, span: Span) {
        self.steps.push(Step::Receive { from, span });
    }

    pub(crate) fn wait(&mut self) {
        if self.steps.last().is_some_and(|last| *last != Step::Wait) {
            self.steps.push(Step::Wait);
        }
    }

    pub(crate) fn copy(&mut self, from: Span, to: Span) {
        self.steps.push(Step::Copy { from, to });
    }

    pub(crate) fn fold_into_left(&mut self, left: Span, right: Span) {
        self.steps.push(Step::FoldIntoLeft { left, right });
    }

    pub(crate) fn fold_into_right(&mut self, left: Span, right: Span) {
        self.steps.push(Step::FoldIntoRight { left, right });
    }

    /// Folds values in pairs of neighbours, then pairs of pairs, and so on, into the span of
    /// value `own`.
    ///
    /// `spans[i]` holds the value of the `i`-th rank or aligned block of ranks. This is the one
    /// order in which reductions are done, so every algorithm gives the same bits.
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
