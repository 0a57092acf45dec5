//! The retry queue of a rank: operations for which their target has no credit, or a send queue no
//! room.
//!
//! Operations are retried at the next pass of the engine and when a target has credit again. Of
//! every target and lane those of the first round are retried until some of them fail in a row,
//! which are then queued last: so the time of a pass is in proportion to its successes, however
//! many are queued, and all are retried at some time. Operations of later rounds wait, as they
//! could take the credit that earlier ones need.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use talpf_primitives::Mutex;

use super::chain::{PUTS, post_chain};
use super::issued::Issued;
use crate::numbers::{LaneNumber, Rank, Round};
use crate::round::RoundState;
use crate::window::{Claim, Landing, Parked, Post, Together};
use crate::world::RankState;

/// Number of operations in a row without success after which a pass stops.
const MISSES: usize = 64;

/// The operations that one rank has to retry.
#[derive(Default)]
pub(crate) struct RetryQueue {
    queues: Mutex<Queues>,
    count: AtomicUsize,
}

type Queues = BTreeMap<(Rank, LaneNumber, Round), VecDeque<Issued>>;

impl RetryQueue {
    pub(crate) fn push(&self, issued: Issued) {
        let mut queues = self.queues.lock();
        queues.entry(issued.destination()).or_default().push_back(issued);
        self.count.store(self.len() + 1, Ordering::Relaxed);
    }

    /// Returns the number of operations. A hint: some may be under retry.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Retries the operations of `rank`. Once that has failed, all of them.
    pub(crate) fn try_again(&self, rank: &RankState) {
        let mut kept = Queues::new();
        // The target and lane of the last round with operations that could not be posted.
        let mut waiting = None;
        for (destination @ (target, lane, _), queue) in self.take() {
            let link = Some((target, lane));
            let queue =
                if waiting == link && !rank.has_failed() { queue } else { attempt(queue, rank) };
            if !queue.is_empty() {
                kept.insert(destination, queue);
                waiting = link;
            }
        }
        if !kept.is_empty() {
            self.give_back(kept);
            rank.wake_poller();
        }
    }

    /// Takes all operations.
    pub(crate) fn drain(&self) -> impl Iterator<Item = Issued> {
        self.take().into_values().flatten()
    }

    fn take(&self) -> Queues {
        let mut queues = self.queues.lock();
        self.count.store(0, Ordering::Relaxed);
        std::mem::take(&mut queues)
    }

    /// Queues operations before those that were added meanwhile.
    fn give_back(&self, kept: Queues) {
        let mut queues = self.queues.lock();
        let mut count = self.len();
        for (destination, mut queue) in kept {
            count += queue.len();
            let newer = queues.entry(destination).or_default();
            queue.append(newer);
            *newer = queue;
        }
        self.count.store(count, Ordering::Relaxed);
    }
}

/// Retries operations of one round to one target. Returns those that remain, with those that were
/// just retried at the end.
fn attempt(mut queue: VecDeque<Issued>, rank: &RankState) -> VecDeque<Issued> {
    let (mut kept, mut misses) = (VecDeque::new(), 0);
    while misses < MISSES || rank.has_failed() {
        let together = queue.iter().take(PUTS).take_while(|issued| issued.goes_together()).count();
        let tried = if together > 1 && !rank.has_failed() {
            let before = kept.len();
            kept.extend(Chain::new(queue.drain(..together)).land(rank));
            (together, kept.len() - before)
        } else {
            let Some(issued) = queue.pop_front() else {
                break;
            };
            let again = issued.attempt();
            let missed = usize::from(again.is_some());
            kept.extend(again);
            (1, missed)
        };
        misses = if tried.0 == tried.1 { misses + tried.1 } else { 0 };
    }
    queue.append(&mut kept);
    queue
}

/// Short puts of one round to one rank of this process.
struct Chain {
    claims: Vec<Claim>,
    /// The operations, each until it is parked.
    puts: RefCell<Vec<Option<Issued>>>,
}

impl Chain {
    fn new(puts: impl Iterator<Item = Issued>) -> Self {
        let puts: Vec<Option<Issued>> = puts.map(Some).collect();
        let claims = puts.iter().flatten().map(Issued::claim).collect();
        Chain { claims, puts: RefCell::new(puts) }
    }

    /// Passes the puts to the windows of their target. Returns those to be retried.
    fn land(self, rank: &RankState) -> Vec<Issued> {
        let mut kept = Vec::new();
        let Some((round, target)) = self.destination() else {
            return kept;
        };
        let world = &round.world;
        let has_landed = |source| world.has_landed(source, target);
        let windows = &world.rank(target).windows;
        let rest = windows.land_together(round.lane, round.number, &self, &has_landed);
        let mut retry = rest.retry.into_iter().peekable();
        for (index, issued) in self.puts.into_inner().into_iter().enumerate() {
            let is_kept = retry.next_if_eq(&index).is_some();
            match issued {
                Some(issued) if is_kept => kept.push(issued),
                // The drop ends it, under no lock.
                Some(issued) if issued.is_posted() => drop(issued),
                Some(issued) => issued.refused(),
                None => {}
            }
        }
        if kept.len() < self.claims.len() {
            world.notify(target);
            rank.progress_if_rung(world);
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

    fn park(&self, index: usize) -> Box<dyn Parked> {
        match self.puts.borrow_mut()[index].take() {
            Some(put) => put.park(),
            None => unreachable!("each is parked once"),
        }
    }
}
