//! Puts of a remote rank whose bytes travel with their claims in one message, and land together.

use std::ops::Range;

use ibverbs_sim::{Operation, Payload, SendWorkRequest};
use smallvec::SmallVec;

use super::eager_put::{EagerPut, OwnedPut, post_arrival};
use super::put_list::{MOST_PUTS, PutList};
use super::{Processes, WindowRequest};
use crate::endpoint::{INLINE_BYTES, silent};
use crate::immediate::EagerArrival;
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
    list: &'a PutList<'a>,
}

impl Processes {
    /// Passes puts of a remote rank, with their bytes, to the windows of this one.
    pub(super) fn take_eager_puts(&self, source: Rank, request: WindowRequest, list: &PutList<'_>) {
        let WindowRequest { target, lane, round } = request;
        let Some(own) = self.peers.local(target) else { return };
        let puts = EagerPuts { processes: self, own, source, request, list };
        let has_landed = |rank| self.peers.has_landed(rank, target);
        let rest = own.windows.land_together(lane, round, &puts, &has_landed);
        if rest.has_parked {
            own.wake_poller_if_delayed();
        }
        // The source limits its puts to its credit, so this table always has some; those for which
        // the queue pair has no room wait for the engine to make some.
        let mut unposted = self.unposted.lock();
        unposted.extend(rest.retry.into_iter().map(|index| puts.owned(index)));
        drop(unposted);
        if let Some(index) = rest.refused {
            puts.owned(index).refuse();
        }
    }
}

impl EagerPuts<'_> {
    /// Returns a put with a copy of its bytes.
    fn owned(&self, index: usize) -> OwnedPut {
        let put = &self.list.puts[index];
        EagerPut {
            peers: self.processes.peers.clone(),
            failure: self.processes.failure.clone(),
            request: self.request,
            claim: put.claim(self.source),
            remote: put.remote,
            bytes: SmallVec::from_slice(&self.list.bytes[self.list.range(index)]),
            posted: None,
        }
    }

    /// Posts the message that counts so many puts, whose bytes were posted.
    fn count(&self, puts: u32) -> Post {
        let (endpoint, here) = (&self.own.endpoint, self.request.target);
        let Some(peer) = self.processes.peers.remote(self.source) else { return Post::All };
        // Another thread may work on the queue pair.
        let was_granted = !endpoint.is_drained(here);
        if was_granted {
            peer.count_granted(here);
        }
        let arrival = EagerArrival { source: self.source, puts, was_granted };
        let posted = post_arrival(endpoint, self.request, arrival.to_bits());
        posted.map_or_else(
            |error| {
                if was_granted {
                    peer.note_arrival(here);
                }
                self.own.not_posted(self.processes.failure.of(here), error)
            },
            |()| Post::All,
        )
    }
}

impl Together for EagerPuts<'_> {
    fn len(&self) -> usize {
        self.list.puts.len()
    }

    #[inline]
    fn claim(&self, index: usize) -> Claim {
        self.list.puts[index].claim(self.source)
    }

    /// Posts the bytes of a range of puts, and the message that counts them. If there is room for the
    /// bytes only, they are posted once more with a retry: nobody reads them before that.
    fn post(&self, range: Range<usize>) -> Post {
        let (endpoint, here) = (&self.own.endpoint, self.request.target);
        let count = range.len() as u32;
        let longest = INLINE_BYTES.min(endpoint.max_transfer);
        let puts = range.map(|index| (self.list.puts[index].remote, self.list.range(index)));
        let mut requests = SmallVec::<[SendWorkRequest<'_>; MOST_PUTS + 1]>::new();
        requests.extend(joined(puts, longest).map(|(remote, range)| {
            silent(Operation::Write { remote }, Payload::Inline(&self.list.bytes[range]))
        }));
        match endpoint.post_all(here, &mut requests) {
            Ok(()) => self.count(count),
            Err(error) => self.own.not_posted(self.processes.failure.of(here), error),
        }
    }

    fn park(&self, range: Range<usize>) -> Box<dyn Parked> {
        Box::new(self.owned(range.start))
    }
}
