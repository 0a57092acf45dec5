//! Short puts of one batch to elements side by side that come before their window, parked as one: a rank that is
//! far ahead, as one of several on a worker is, parks most of what it puts.
//!
//! The window that covers them lets all in or none, and they are posted as one chain. They may lie in several
//! windows, if they came before these were declared: then they are taken apart.

use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use super::batch::Chain;
use super::batches::Batch;
use super::issued::refusal;
use crate::sender::RoundState;
use crate::window::{Claim, Parked, Post, Together};

/// Puts that are parked as one.
pub(super) struct ParkedPuts {
    round: Arc<RoundState>,
    batch: Batch<Arc<RoundState>>,
    /// `true` while the round counts them as parked.
    is_counted: bool,
}

impl ParkedPuts {
    /// Copies a range of the puts of `batch`, whose round still has a handle or counts others as parked.
    pub(super) fn new(
        round: &Arc<RoundState>,
        batch: &Batch<Arc<RoundState>>,
        range: Range<usize>,
    ) -> Self {
        round.parked.enter();
        ParkedPuts { round: Arc::clone(round), batch: batch.part(range), is_counted: true }
    }

    fn puts(&self) -> Chain<'_> {
        Chain { round: &self.round, batch: &self.batch }
    }

    fn leave_round(&mut self) {
        if take(&mut self.is_counted) && self.round.parked.leave() {
            // The caller may hold a lock.
            self.round.sender.own.ring_for_poll();
        }
    }
}

impl Parked for ParkedPuts {
    fn post(&mut self) -> Post {
        let post = self.puts().post(0..self.batch.puts.len());
        if post == Post::All {
            self.leave_round();
        }
        post
    }

    fn is_quick(&self) -> bool {
        true
    }

    fn split(&mut self) -> Vec<(Claim, Box<dyn Parked>)> {
        let puts = self.puts();
        let part = |index: usize| -> Box<dyn Parked> {
            Box::new(ParkedPuts::new(&self.round, &self.batch, index..index + 1))
        };
        match puts.len() {
            1 => Vec::new(),
            count => (0..count).map(|index| (puts.claim(index), part(index))).collect(),
        }
    }

    /// Fails the run: the puts have returned.
    fn refuse(self: Box<Self>) {
        refusal(&self.puts().claim(0), &self.round, self.batch.target);
    }
}

impl Drop for ParkedPuts {
    fn drop(&mut self) {
        self.leave_round();
    }
}
