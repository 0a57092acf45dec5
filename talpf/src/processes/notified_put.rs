//! Notifications of remote ranks that have travelled with the bytes of their puts.
//!
//! As an eager put into a window, this rank writes the bytes itself, once its notifications let the
//! put land. The write announces itself, so that the notification arrives like any other.

use std::sync::Arc;

use ibverbs_sim::{Operation, RemoteAddress};
use smallvec::SmallVec;

use super::Processes;
use super::inbox_grant::report_refusal;
use crate::failure::RunFailure;
use crate::immediate::Immediate;
use crate::notification::NotifiedClaim;
use crate::numbers::{ArrivalNumber, Rank};
use crate::peer::Peers;
use crate::window::{Landing, Outcome, Parked, Post};

/// A notification of a remote rank to `here`, with the bytes `B` of its put.
struct NotifiedPut<B> {
    peers: Peers,
    failure: Arc<RunFailure>,
    here: Rank,
    notified: NotifiedClaim,
    remote: RemoteAddress,
    bytes: B,
    arrival: Option<ArrivalNumber>,
}

/// A notification that waits here, with a copy of the bytes.
type OwnedPut = NotifiedPut<SmallVec<[u8; 64]>>;

impl Processes {
    /// Passes a notification of a remote rank, with the bytes of its put, to the notifications of
    /// `here`.
    pub(super) fn take_notified_put(
        &self,
        here: Rank,
        notified: NotifiedClaim,
        remote: RemoteAddress,
        bytes: &[u8],
    ) {
        let (peers, failure) = (self.peers.clone(), Arc::clone(&self.failure));
        let put = NotifiedPut { peers, failure, here, notified, remote, bytes, arrival: None };
        match self.peers.land_notified(here, notified, here, true, put) {
            Outcome::Posted(_) => self.peers.notify_waiting(here),
            Outcome::Parked => {}
            // The source limits its puts to its credit, so there always is some here.
            Outcome::Refused(put) | Outcome::Retry(put) => put.report(),
        }
    }
}

impl<B: AsRef<[u8]>> NotifiedPut<B> {
    /// Writes the bytes, which announces the notification.
    fn write(&mut self) -> Post {
        let (here, remote, bytes) = (self.here, self.remote, self.bytes.as_ref());
        let (Some(own), Some(number)) = (self.peers.local(here), self.arrival) else {
            return Post::All;
        };
        let immediate = Immediate::notified(number);
        let request = match bytes.is_empty() {
            true => Operation::SendWithImmediate { immediate },
            false => Operation::WriteWithImmediate { remote, immediate },
        };
        match own.endpoint.post_inline(here, request, bytes) {
            Ok(()) => Post::All,
            Err(error) => own.not_posted(self.failure.of(here), error),
        }
    }

    fn report(&self) {
        report_refusal(&self.peers, &self.failure, self.here, &self.notified);
    }
}

impl NotifiedPut<&[u8]> {
    fn into_owned(self) -> OwnedPut {
        let NotifiedPut { peers, failure, here, notified, remote, bytes, arrival } = self;
        let bytes = SmallVec::from_slice(bytes);
        NotifiedPut { peers, failure, here, notified, remote, bytes, arrival }
    }
}

impl Landing for NotifiedPut<&[u8]> {
    fn post(&mut self) -> Post {
        self.write()
    }

    fn admit(&mut self, number: ArrivalNumber) {
        self.arrival = Some(number);
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self.into_owned())
    }
}

impl Parked for OwnedPut {
    fn post(&mut self) -> Post {
        self.write()
    }

    fn admit(&mut self, number: ArrivalNumber) {
        self.arrival = Some(number);
    }

    fn refuse(self: Box<Self>) {
        self.report();
    }
}
