//! Collective meta-data: every rank gives some bytes and gets those of all.
//!
//! For start and registration, never for supersteps. Each rank calls in the same order; the n-th
//! call of one belongs to the n-th of the others.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;

use crate::error::Error;
use crate::numbers::Rank;

/// What the ranks give each other, as this process knows it.
pub(crate) struct Exchange {
    ranks: usize,
    /// Those of this process, which take what all give.
    takers: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: HashMap<u64, Call>,
    next: Vec<u64>,
    failed: Option<(Rank, String)>,
}

#[derive(Default)]
struct Call {
    given: Vec<Option<Vec<u8>>>,
    all: Option<Arc<[Vec<u8>]>>,
    taken: usize,
    waiting: Vec<Waker>,
}

impl Exchange {
    pub(crate) fn new(ranks: u32, takers: usize) -> Self {
        let ranks = ranks as usize;
        let state = State { next: vec![0; ranks], ..State::default() };
        Exchange { ranks, takers, state: Mutex::new(state) }
    }

    /// Gives `bytes` and waits for those of all ranks, by rank.
    ///
    /// **Errors**: a rank failed and will not come.
    pub(crate) async fn all_gather(
        &self,
        rank: Rank,
        bytes: Vec<u8>,
    ) -> Result<Arc<[Vec<u8>]>, Error> {
        let number = self.give(rank, bytes);
        poll_fn(|cx| {
            let mut state = self.state.lock();
            let failed = state.failed.clone();
            let Some(call) = state.calls.get_mut(&number) else {
                return Poll::Pending;
            };
            if let Some(all) = &call.all {
                let all = Arc::clone(all);
                call.taken += 1;
                if call.taken == self.takers {
                    state.calls.remove(&number);
                }
                return Poll::Ready(Ok(all));
            }
            if let Some((rank, reason)) = failed {
                return Poll::Ready(Err(Error::PeerFailed { rank, reason }));
            }
            call.waiting.push(cx.waker().clone());
            talpf_runtime::note_wait("a collective call of all ranks");
            Poll::Pending
        })
        .await
    }

    /// Gives the bytes of a rank, and says in which call.
    pub(crate) fn give(&self, rank: Rank, bytes: Vec<u8>) -> u64 {
        let mut state = self.state.lock();
        let number = state.next[rank.index()];
        state.next[rank.index()] += 1;
        let call = state.calls.entry(number).or_default();
        call.given.resize(self.ranks, None);
        call.given[rank.index()] = Some(bytes);
        if call.given.iter().all(Option::is_some) {
            call.all = Some(call.given.drain(..).flatten().collect());
            call.waiting.drain(..).for_each(Waker::wake);
        }
        number
    }

    /// Ends all waiting: `rank` will not come any more.
    pub(crate) fn fail(&self, rank: Rank, reason: &str) {
        let mut state = self.state.lock();
        state.failed.get_or_insert((rank, reason.to_owned()));
        for call in state.calls.values_mut() {
            call.waiting.drain(..).for_each(Waker::wake);
        }
    }
}
