//! Puts of a remote rank whose bytes travel with their claims in one message, and land together.

use std::ops::Range;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::eager_put::{EagerPut, post_writes};
use super::put_list::ListedPut;
use super::{Processes, WindowRequest};
use crate::endpoint::INLINE_BYTES;
use crate::numbers::Rank;
use crate::operation::joined;
use crate::peer::LocalPeer;
use crate::window::{Claim, Parked, Post, Together};

/// Puts of one round that have arrived together.
struct EagerPuts<'a> {
    processes: &'a Processes,
    own: &'a LocalPeer,
    source: Rank,
    request: WindowRequest,
    puts: &'a [ListedPut],
    bytes: &'a [u8],
}

impl Processes {
    /// Passes puts of a remote rank, with the bytes of all, to the windows of this one.
    pub(super) fn take_eager_puts(
        &self,
        source: Rank,
        request: WindowRequest,
        (puts, bytes): (&[ListedPut], &[u8]),
    ) {
        let WindowRequest { target, lane, round } = request;
        let Some(own) = self.peers.local(target) else { return };
        if !self.may_be_in(source, request) {
            return;
        }
        let puts = EagerPuts { processes: self, own, source, request, puts, bytes };
        let has_landed = |rank| self.peers.has_landed(rank, target);
        let rest = own.windows.land_together(lane, round, &puts, &has_landed);
        self.peers.run_deferred(target, rest.freed);
        if rest.has_parked {
            own.wake_poller_if_delayed();
        }
        if !rest.retry.is_empty() {
            // The source limits its puts to its credit, so this table always has some; these wait
            // for the engine to make room in the queue pair.
            self.unposted.lock().extend(rest.retry.into_iter().map(|index| puts.owned(index)));
            self.has_unposted.store(true, Ordering::Release);
        }
        if let Some(index) = rest.refused {
            puts.owned(index).refuse();
        }
    }
}

impl EagerPuts<'_> {
    /// Returns a put with a copy of its bytes.
    fn owned(&self, index: usize) -> EagerPut {
        let put = &self.puts[index];
        EagerPut {
            peers: self.processes.peers.clone(),
            failure: self.processes.failure.clone(),
            request: self.request,
            claim: put.claim(self.source),
            remote: put.remote,
            bytes: SmallVec::from_slice(&self.bytes[put.range()]),
        }
    }
}

impl Together for EagerPuts<'_> {
    fn len(&self) -> usize {
        self.puts.len()
    }

    #[inline]
    fn claim(&self, index: usize) -> Claim {
        self.puts[index].claim(self.source)
    }

    fn post(&self, range: Range<usize>) -> Post {
        let count = (self.source, range.len() as u32);
        let longest = INLINE_BYTES.min(self.own.endpoint.max_transfer);
        let puts = self.puts[range].iter().map(|put| (put.remote, put.range()));
        let writes = joined(puts, longest).map(|(at, range)| (at, &self.bytes[range]));
        post_writes((self.own, &self.processes.failure), self.request, count, writes)
    }

    fn park(&self, range: Range<usize>) -> Box<dyn Parked> {
        Box::new(self.owned(range.start))
    }
}
