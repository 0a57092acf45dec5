//! Communication lines: each send joined with its receive, and the receive
//! with the end of the synchronisation that covers it.

use super::timeline::{Entry, Thread, Timeline};
use crate::{Event, MessageKind};

/// Message from its call to the end of the receiver's sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Communication {
    pub(super) sender: Thread,
    pub(super) logical_send_ns: u64,
    pub(super) physical_send_ns: u64,
    pub(super) receiver: Thread,
    pub(super) logical_receive_ns: u64,
    pub(super) physical_receive_ns: u64,
    pub(super) bytes: u64,
    /// Tag of the program, or round of a one-sided operation.
    pub(super) tag: u64,
}

/// Arrival of a message whose send is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) time_ns: u64,
    pub(super) at: Thread,
    pub(super) kind: MessageKind,
    /// Lane of a one-sided operation.
    pub(super) lane: Option<u32>,
    /// Time from where the data left.
    pub(super) latency_ns: u64,
    /// Time from the call to where the data left.
    pub(super) waited_ns: u64,
}

/// Messages of a trace.
#[derive(Debug, Default)]
pub(super) struct Communications {
    /// Messages by logical send.
    pub(super) lines: Vec<Communication>,
    /// Arrivals by time.
    pub(super) arrivals: Vec<Arrival>,
    pub(super) unmatched_sends: u64,
    pub(super) unmatched_receives: u64,
    /// Number of arrivals recorded before the call of their send; such an arrival is shown at the
    /// send. One between call and send shows that the sender has read the clock late.
    pub(super) early_receives: u64,
}

/// Sender, receiver and message number.
type MessageKey = (u32, u32, u64);
/// Rank, lane, round, and time of the end of the sync.
type SyncEnd = (u32, u32, u64, u64);

struct Sent {
    key: MessageKey,
    from: Thread,
    called_ns: u64,
    sent_ns: u64,
    bytes: u64,
    kind: MessageKind,
}

struct Received {
    key: MessageKey,
    at: Thread,
    arrived_ns: u64,
    until: Until,
}

/// Logical receive of a message.
enum Until {
    /// End of the sync of this lane and round.
    Sync(u32, u64),
    /// Time at which a message with this tag was complete.
    Complete(u32, u64),
}

/// Sends and receives of all messages.
#[derive(Default)]
struct Halves {
    sends: Vec<Sent>,
    receives: Vec<Received>,
    sync_ends: Vec<SyncEnd>,
}

impl Communications {
    /// Joins sends and receives by sorting both. Among messages with the same key the first send
    /// matches the first receive.
    pub(super) fn new(timeline: &Timeline<'_>) -> Self {
        let mut halves = Halves::default();
        timeline.entries().iter().for_each(|entry| halves.add(*entry));
        halves.sends.sort_by_key(|sent| sent.key);
        halves.receives.sort_by_key(|received| received.key);
        halves.sync_ends.sort_unstable();

        let mut this = Self::default();
        let mut receives = halves.receives.iter().peekable();
        for sent in &halves.sends {
            while receives.next_if(|received| received.key < sent.key).is_some() {
                this.unmatched_receives += 1;
            }
            match receives.next_if(|received| received.key == sent.key) {
                Some(received) => this.join(sent, received, &halves.sync_ends),
                None => this.unmatched_sends += 1,
            }
        }
        this.unmatched_receives += receives.count() as u64;
        this.lines.sort_by_key(|line| line.logical_send_ns);
        this.arrivals.sort_by_key(|arrival| arrival.time_ns);
        this
    }

    fn join(&mut self, sent: &Sent, received: &Received, sync_ends: &[SyncEnd]) {
        let is_early = received.arrived_ns < sent.called_ns;
        self.early_receives += u64::from(is_early);
        let physical_send_ns =
            if is_early { sent.sent_ns } else { sent.sent_ns.min(received.arrived_ns) };
        let physical_receive_ns = received.arrived_ns.max(physical_send_ns);
        let rank = received.at.rank;
        let (tag, lane, logical_receive_ns) = match received.until {
            Until::Sync(lane, round) => {
                let covering = (rank, lane, round, received.arrived_ns);
                let end = sync_ends.get(sync_ends.partition_point(|end| *end < covering));
                let end = end.filter(|end| (end.0, end.1, end.2) == (rank, lane, round));
                (round, Some(lane), end.map_or(physical_receive_ns, |end| end.3))
            }
            Until::Complete(tag, complete_ns) => (tag.into(), None, complete_ns),
        };
        let (time_ns, at, kind) = (physical_receive_ns, received.at, sent.kind);
        let latency_ns = physical_receive_ns - physical_send_ns;
        let waited_ns = physical_send_ns - sent.called_ns;
        self.arrivals.push(Arrival { time_ns, at, kind, lane, latency_ns, waited_ns });
        self.lines.push(Communication {
            sender: sent.from,
            logical_send_ns: sent.called_ns,
            physical_send_ns,
            receiver: received.at,
            logical_receive_ns: logical_receive_ns.max(physical_receive_ns),
            physical_receive_ns,
            bytes: sent.bytes,
            tag,
        });
    }
}

impl Halves {
    fn add(&mut self, entry: Entry<'_>) {
        let now = entry.time_ns();
        match entry.record.event {
            Event::Send { kind, rank, peer, message, bytes, waited } => self.sends.push(Sent {
                key: (rank, peer, message),
                from: entry.thread(rank),
                called_ns: now.saturating_sub(waited.as_nanos()),
                sent_ns: now,
                bytes,
                kind,
            }),
            Event::Receive { rank, peer, message, lane, round } => self.receives.push(Received {
                key: (peer, rank, message),
                at: entry.thread(rank),
                arrived_ns: now,
                until: Until::Sync(lane, round),
            }),
            Event::ReceiveTagged { rank, peer, message, tag, arrived } => {
                self.receives.push(Received {
                    key: (peer, rank, message),
                    at: entry.thread(rank),
                    arrived_ns: now.saturating_sub(arrived.as_nanos()),
                    until: Until::Complete(tag, now),
                });
            }
            Event::SyncEnd { rank, lane, round, .. } => {
                self.sync_ends.push((rank, lane, round, now))
            }
            _ => {}
        }
    }
}
