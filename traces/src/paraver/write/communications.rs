//! Communication lines: each send joined with its receive, and the receive
//! with the end of the synchronisation that covers it.

use super::timeline::{Entry, Thread, Timeline};
use crate::Event;

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
    pub(super) message: u64,
}

/// Messages of a trace.
#[derive(Debug, Default)]
pub(super) struct Communications {
    /// Messages by logical send.
    pub(super) lines: Vec<Communication>,
    pub(super) unmatched_sends: u64,
    pub(super) unmatched_receives: u64,
    /// Number of arrivals recorded before their send. Both read one clock, but the sender may read
    /// it late; such an arrival is shown at the send.
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
}

struct Received {
    key: MessageKey,
    at: Thread,
    arrived_ns: u64,
    lane: u32,
    round: u64,
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
        this
    }

    fn join(&mut self, sent: &Sent, received: &Received, sync_ends: &[SyncEnd]) {
        self.early_receives += u64::from(received.arrived_ns < sent.sent_ns);
        let physical_receive_ns = received.arrived_ns.max(sent.sent_ns);
        let (lane, round) = (received.lane, received.round);
        let covering = (received.at.rank, lane, round, received.arrived_ns);
        let logical_receive_ns = sync_ends
            .get(sync_ends.partition_point(|end| *end < covering))
            .filter(|end| (end.0, end.1, end.2) == (received.at.rank, lane, round))
            .map_or(physical_receive_ns, |end| end.3.max(physical_receive_ns));
        self.lines.push(Communication {
            sender: sent.from,
            logical_send_ns: sent.called_ns,
            physical_send_ns: sent.sent_ns,
            receiver: received.at,
            logical_receive_ns,
            physical_receive_ns,
            bytes: sent.bytes,
            message: sent.key.2,
        });
    }
}

impl Halves {
    fn add(&mut self, entry: Entry<'_>) {
        let now = entry.time_ns();
        match entry.record.event {
            Event::Send { rank, peer, message, bytes, waited } => self.sends.push(Sent {
                key: (rank, peer, message),
                from: entry.thread(rank),
                called_ns: now.saturating_sub(waited.as_nanos()),
                sent_ns: now,
                bytes,
            }),
            Event::Receive { rank, peer, message, lane, round } => self.receives.push(Received {
                key: (peer, rank, message),
                at: entry.thread(rank),
                arrived_ns: now,
                lane,
                round,
            }),
            Event::SyncEnd { rank, lane, round, .. } => {
                self.sync_ends.push((rank, lane, round, now))
            }
            _ => {}
        }
    }
}
