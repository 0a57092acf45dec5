//! Puts of remote ranks outside rounds, which the notifications of this rank let land by a grant.

use std::sync::Arc;

use super::Processes;
use super::control_message::ControlMessage;
use crate::error::Error;
use crate::failure::RunFailure;
use crate::notification::NotifiedClaim;
use crate::numbers::{ArrivalNumber, Rank};
use crate::peer::Peers;
use crate::window::{Landing, Outcome, Parked, Post};

/// The answer of `here` to the inbox request of a remote rank.
struct InboxGrant {
    peers: Peers,
    failure: Arc<RunFailure>,
    here: Rank,
    number: u32,
    notified: NotifiedClaim,
    arrival: Option<ArrivalNumber>,
}

impl Processes {
    /// Passes an operation of a remote rank to the notifications of `here`.
    pub(super) fn take_inbox_request(&self, here: Rank, number: u32, notified: NotifiedClaim) {
        let (peers, failure) = (self.peers.clone(), Arc::clone(&self.failure));
        let source = notified.claim.source;
        let grant = InboxGrant { peers, failure, here, number, notified, arrival: None };
        match self.peers.land_notified(here, notified, source, true, grant) {
            Outcome::Posted(_) | Outcome::Parked => {}
            // A remote origin limits its requests to its credit, so there always is some here.
            Outcome::Refused(grant) | Outcome::Retry(grant) => grant.report(),
        }
    }
}

impl InboxGrant {
    fn grant(&self) -> Post {
        if let Some(source) = self.peers.remote(self.notified.claim.source)
            && let Some(arrival) = self.arrival
        {
            source.grant_inbox(self.here, self.number, arrival);
        }
        Post::All
    }

    fn report(&self) {
        report_refusal(&self.peers, &self.failure, self.here, &self.notified);
    }
}

/// Sends the refusal of a notification to its source, and fails the run, unless it has failed and
/// both ranks know.
pub(super) fn report_refusal(
    peers: &Peers,
    failure: &RunFailure,
    here: Rank,
    notified: &NotifiedClaim,
) {
    if failure.each().all(|failure| failure.has_failed()) {
        return;
    }
    let ids = peers.local(here).map_or(0, |own| own.notifications.ids());
    // Before the failure, so that the source can name its operation.
    if let Some(source) = peers.remote(notified.claim.source) {
        source.send(here, ControlMessage::InboxRefusal { ids, notified: *notified });
    }
    failure.fail(&[here], &Error::outside_inbox(notified, here, ids));
}

impl Landing for InboxGrant {
    fn post(&mut self) -> Post {
        self.grant()
    }

    fn admit(&mut self, number: ArrivalNumber) {
        self.arrival = Some(number);
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self)
    }
}

impl Parked for InboxGrant {
    fn post(&mut self) -> Post {
        self.grant()
    }

    fn admit(&mut self, number: ArrivalNumber) {
        self.arrival = Some(number);
    }

    fn refuse(self: Box<Self>) {
        self.report();
    }
}
