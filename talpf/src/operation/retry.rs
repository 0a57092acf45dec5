//! The retry queue of a rank: operations for which their target has no credit, or a send queue no
//! room.
//!
//! Operations are retried at the next pass of the engine and when a target has credit again. Of
//! every target and lane (outside rounds, id) those of the first round are retried until some of them fail in a row,
//! which are then queued last: so the time of a pass is in proportion to its successes, however
//! many are queued, and all are retried at some time. Operations of later rounds wait, as they
//! could take the credit that earlier ones need.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::{Bound, Range};
use std::sync::Arc;

use ibverbs_sim::RemoteAddress;

use super::chain::{PUTS, post_chain};
use super::issued::Issued;
use super::retry_queue::{Queues, Retried};
use crate::numbers::{Rank, Round};
use crate::sender::{RoundState, Sender};
use crate::window::{Claim, Landing, Parked, Post, Together, TravelTogether};

/// Number of operations in a row without success after which a pass stops.
const MISSES: usize = 64;

impl Sender {
    /// Retries the queued operations. Once the rank has failed, all of them.
    #[cold]
    pub(crate) fn try_again(&self) {
        let retry = |queues, count| self.attempt_all(queues, count);
        if self.retries.retry(&self.own.awaits_credit, retry) && self.has_unannounced_retries() {
            self.own.wake_poller();
        }
    }

    /// Retries operations.
    fn attempt_all(&self, mut queues: Queues<Issued>, before: usize) -> Retried<Issued> {
        let (mut count, mut lacking) = (before, Some(0));
        let mut next = queues.first_key_value().map(|(first, _)| *first);
        while let Some(destination @ (target, sequence, _)) = next {
            let queue = queues.remove(&destination).unwrap_or_default();
            count -= queue.len();
            let (kept, lacks) = attempt(queue, self);
            lacking = lacking.zip(lacks).map(|(all, these)| all + these);
            let mut done = destination;
            if !kept.is_empty() {
                count += kept.len();
                queues.insert(destination, kept);
                if !self.has_failed() {
                    done = (target, sequence, Round(u64::MAX));
                }
            }
            let after = queues.range((Bound::Excluded(done), Bound::Unbounded)).next();
            next = after.map(|(destination, _)| *destination);
        }
        // Of each destination as many were retried, or all of it.
        let lacking = lacking.filter(|_| count == before).map(|all| all.min(MISSES));
        Retried { kept: queues, count, lacking }
    }
}

/// Retries operations of one round to one target. Returns those that remain, with those that were
/// just retried at the end, and the number of these if all of them lack credit at a remote target.
fn attempt(mut queue: VecDeque<Issued>, origin: &Sender) -> (VecDeque<Issued>, Option<usize>) {
    let (mut left, mut misses, mut lacking) = (queue.len(), 0, Some(0));
    while left > 0 && (misses < MISSES || origin.has_failed()) {
        let first = queue.iter().take(PUTS.min(left));
        let together = first.take_while(|issued| issued.goes_together()).count();
        let (tried, missed) = if together > 1 && !origin.has_failed() {
            // Puts that still go together may ask for windows later, without an event.
            lacking = None;
            let kept = Chain::new(queue.drain(..together)).land(origin);
            let missed = kept.len();
            queue.extend(kept);
            (together, missed)
        } else {
            let again = queue.pop_front().and_then(Issued::attempt);
            let missed = usize::from(again.is_some());
            lacking = lacking
                .filter(|_| again.as_ref().is_none_or(Issued::lacks_credit))
                .map(|lacking| lacking + missed);
            queue.extend(again);
            (1, missed)
        };
        left -= tried;
        misses = if tried == missed { misses + missed } else { 0 };
    }
    (queue, lacking)
}

/// Short puts of one round to one rank.
struct Chain {
    claims: Vec<Claim>,
    /// The operations, each until it is parked.
    puts: RefCell<Vec<Option<Issued>>>,
}

impl Chain {
    fn new(puts: impl Iterator<Item = Issued>) -> Self {
        let puts: Vec<Option<Issued>> = puts.map(Some).collect();
        let claims = puts.iter().flatten().filter_map(Issued::claim).collect();
        Chain { claims, puts: RefCell::new(puts) }
    }

    /// Passes the puts to the windows of their target. Returns those to be retried.
    fn land(self, origin: &Sender) -> Vec<Issued> {
        let mut kept = Vec::new();
        let Some((round, target)) = self.destination() else {
            return kept;
        };
        let rest = origin.peers.land_together(round.request(target), &self);
        let mut retry = rest.retry.into_iter().peekable();
        for (index, issued) in self.puts.into_inner().into_iter().enumerate() {
            let is_kept = retry.next_if_eq(&index).is_some();
            match issued {
                Some(issued) if is_kept => kept.push(issued),
                // The drop ends it, under no lock.
                Some(issued) if issued.is_posted() => drop(issued),
                Some(issued) => issued.refused(&self.claims[index]),
                None => {}
            }
        }
        if kept.len() < self.claims.len() {
            origin.peers.notify(target);
            round.progress_if_rung();
        }
        kept
    }

    fn destination(&self) -> Option<(Arc<RoundState>, Rank)> {
        let puts = self.puts.borrow();
        let first = puts.first()?.as_ref()?;
        Some((Arc::clone(first.round()), first.destination().0))
    }
}

impl Together for Chain {
    fn len(&self) -> usize {
        self.claims.len()
    }

    #[inline]
    fn claim(&self, index: usize) -> Claim {
        self.claims[index]
    }

    fn post(&self, range: Range<usize>) -> Post {
        let mut puts = self.puts.borrow_mut();
        let (count, puts) = (range.len(), &mut puts[range]);
        if let [Some(put)] = puts {
            return Landing::post(put);
        }
        puts.iter_mut().flatten().for_each(Issued::trace_send);
        let Some(first) = puts.iter().flatten().next() else {
            return Post::All;
        };
        let requests = puts.iter().flatten().filter_map(Issued::inline);
        let post = post_chain(first.round(), first.destination().0, count, requests);
        if post == Post::All {
            puts.iter_mut().flatten().for_each(Issued::note_posted);
        }
        post
    }

    fn park(&self, range: Range<usize>) -> Box<dyn Parked> {
        match self.puts.borrow_mut()[range.start].take() {
            Some(put) => put.park(),
            None => unreachable!("each is parked once"),
        }
    }
}

impl TravelTogether for Chain {
    fn with_bytes(&self, index: usize, visit: impl FnOnce(RemoteAddress, &[u8])) {
        let puts = self.puts.borrow();
        if let Some((remote, bytes)) = puts[index].as_ref().and_then(Issued::inline) {
            visit(remote, bytes);
        }
    }

    fn trace_send(&self, range: Range<usize>) {
        self.puts.borrow_mut()[range].iter_mut().flatten().for_each(Issued::trace_send);
    }

    fn note_sent(&self, range: Range<usize>) {
        self.puts.borrow_mut()[range].iter_mut().flatten().for_each(Issued::note_posted);
    }
}
