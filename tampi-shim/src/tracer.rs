//! Records the messages of a communicator at one rank in the trace.
//!
//! Both ends count the messages of one source, destination and tag, and so give a message the same
//! number. A receive is counted when it ends: two receives of one tag that end in another order
//! than they were matched in swap their numbers. Messages of collectives are not recorded.

use std::collections::HashMap;
use std::sync::Arc;

use talpf_primitives::Mutex;
use talpf_runtime::Group;
use talpf_traces::{Event, MessageKind, ValueKind, WaitNs};

use crate::rank::{Rank, WorldRank};
use crate::select::Select;
use crate::status::Status;
use crate::tag::Tag;
use crate::ticket::ticket;
use crate::transport::{ContextId, Members, Outgoing, Start};

/// Number of messages sent to, or received from, a rank with a tag.
type Counts = Mutex<HashMap<(Rank, Tag), u64>>;

/// Recorder of one communicator at one rank, in runs that are traced.
pub(crate) struct Tracer {
    group: Group,
    context: ContextId,
    here: WorldRank,
    members: Members,
    sent: Counts,
    arrived: Counts,
}

/// Call of a send, with what the trace shows of it.
pub(crate) struct Call {
    number: u64,
    peer: WorldRank,
    bytes: u64,
    called_ns: u64,
}

impl Tracer {
    /// Creates the recorder for `rank`, the calling rank, or returns `None` if the run is not
    /// traced.
    pub(crate) fn new(
        group: &Group,
        context: ContextId,
        rank: Rank,
        members: &Members,
    ) -> Option<Arc<Self>> {
        let here = *members.get(rank.index()).filter(|_| group.is_traced())?;
        let (group, members) = (group.clone(), Arc::clone(members));
        let (sent, arrived) = (Counts::default(), Counts::default());
        Some(Arc::new(Tracer { group, context, here, members, sent, arrived }))
    }

    /// Numbers a message that is about to be sent, and returns its call.
    pub(crate) fn call(&self, message: &Outgoing, bytes: u64) -> Call {
        let number = self.number(&self.sent, message.destination.rank, message.tag);
        let peer = message.destination.world;
        Call { number, peer, bytes, called_ns: self.group.clock().now_ns() }
    }

    /// Records a send that was handed over to the transport.
    pub(crate) fn sent(&self, call: Call) {
        let Call { number: message, peer, bytes, called_ns } = call;
        let (rank, peer) = (self.here.0, peer.0);
        self.group.trace(|now_ns| {
            let (kind, waited) = (MessageKind::TwoSided, WaitNs::between(called_ns, now_ns));
            Event::Send { kind, rank, peer, message, bytes, waited }
        });
    }

    /// Records that a receive is posted.
    pub(crate) fn posts(&self, tag: Select<Tag>) {
        let value = match tag {
            Select::Only(tag) => i64::from(tag.0) + 1,
            Select::Any => 1 << 32,
        };
        let (rank, kind) = (self.here.0, ValueKind::ReceivePosted);
        self.group.trace(|_| Event::Value { rank, kind, value });
    }

    /// Arranges that a receive is recorded when it ends.
    pub(crate) fn follow(self: &Arc<Self>, start: Start) -> Start {
        match start {
            Start::Ended(result) => {
                if let Ok(status) = result {
                    self.ended(status.into());
                }
                Start::Ended(result)
            }
            Start::Batched(_) => start,
            Start::UnderWay { awaited, operation } => {
                let tracer = Arc::clone(self);
                let (ours, followed) = ticket();
                awaited.call(Box::new(move |result| {
                    if let Ok(status) = result {
                        tracer.ended(status);
                    }
                    ours.complete(result);
                }));
                Start::UnderWay { awaited: followed, operation }
            }
        }
    }

    fn ended(&self, status: Status) {
        if status.is_cancelled() {
            return;
        }
        let Status { source, tag, .. } = status;
        let Some(peer) = self.members.get(source.index()) else { return };
        let message = self.number(&self.arrived, source, tag);
        let (rank, peer) = (self.here.0, peer.0);
        let arrived = WaitNs::default();
        self.group.trace(|_| Event::ReceiveTagged { rank, peer, message, tag: tag.0, arrived });
    }

    fn number(&self, counts: &Counts, peer: Rank, tag: Tag) -> u64 {
        let mut counts = counts.lock();
        let count = counts.entry((peer, tag)).or_default();
        *count += 1;
        u64::from(self.context.0) << 52 | u64::from(tag.0) << 24 | (*count & 0xff_ffff)
    }
}
