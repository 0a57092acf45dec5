//! Communication lines: each send joined with its receive, and the receive
//! with the end of the synchronisation that covers it. Messages are kept as the places of both records.
//! A message to or from another process has one record here, and is left as a half.

use std::collections::BTreeMap;

use super::layout::{Layout, Thread};
use super::records::RecordIndex;
use super::timeline::Timeline;
use crate::paraver::{EXACT_LIMIT, EventKind};
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
    /// Tag of the program, round of a one-sided operation, or kind and round of a control message.
    pub(super) tag: u64,
}

/// Arrival of a message whose send is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) time_ns: u64,
    pub(super) at: Thread,
    pub(super) kind: MessageKind,
    /// Lane of a one-sided operation or of a sync.
    pub(super) lane: Option<u32>,
    /// Time from where the data left.
    pub(super) latency_ns: u64,
    /// Time from the call to where the data left.
    pub(super) waited_ns: u64,
}

/// Half of a message to or from another process, with its types and values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Half {
    pub(super) time_ns: u64,
    pub(super) at: Thread,
    pub(super) values: [(EventKind, i64); 5],
}

/// Messages of a trace.
pub(super) struct Communications<'a> {
    timeline: &'a Timeline<'a>,
    layout: Layout,
    /// Sends with their receives, by logical send.
    messages: Vec<Message>,
    /// Indices of messages, by arrival.
    arrivals: Vec<u32>,
    /// Sends to, and receives from, other processes, by time.
    halves: Vec<RecordIndex>,
    /// Ends of syncs by rank and lane, each by round and time.
    sync_ends: BTreeMap<(u32, u32), Vec<RecordIndex>>,
    pub(super) unmatched_sends: u64,
    pub(super) unmatched_receives: u64,
    /// Number of arrivals recorded before the call of their send; such an arrival is shown at the
    /// send. One between call and send shows that the sender has read the clock late.
    pub(super) early_receives: u64,
}

/// Places of a send and of its receive.
#[derive(Clone, Copy)]
struct Message {
    send: RecordIndex,
    receive: RecordIndex,
}

struct Sent {
    from: Thread,
    called_ns: u64,
    sent_ns: u64,
    bytes: u64,
    kind: MessageKind,
}

struct Received {
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
    /// Arrival of a control message of this kind, lane and round.
    Arrival(MessageKind, u32, u64),
}

impl Until {
    /// Returns the lane, if the message is of one.
    fn lane(&self) -> Option<u32> {
        match *self {
            Self::Sync(lane, _) | Self::Arrival(_, lane, _) => Some(lane),
            Self::Complete(..) => None,
        }
    }
}

/// Physical times of a message.
struct Times {
    physical_send_ns: u64,
    physical_receive_ns: u64,
}

/// Sends and receives between a sender and a receiver, of control messages or of the others.
#[derive(Default)]
struct Halves {
    sends: Vec<RecordIndex>,
    receives: Vec<RecordIndex>,
}

impl<'a> Communications<'a> {
    /// Joins sends and receives by sorting both. Among messages with the same key the first send
    /// matches the first receive.
    pub(super) fn new(timeline: &'a Timeline<'a>) -> Self {
        let mut halves = BTreeMap::<(u32, u32, bool), Halves>::new();
        let mut sync_ends = BTreeMap::<_, Vec<RecordIndex>>::new();
        for (place, _, record) in timeline.records().all() {
            match record.event {
                Event::Send { kind, rank, peer, .. } => {
                    halves.entry((rank, peer, kind.is_control())).or_default().sends.push(place);
                }
                Event::Receive { rank, peer, .. } | Event::ReceiveTagged { rank, peer, .. } => {
                    halves.entry((peer, rank, false)).or_default().receives.push(place);
                }
                Event::ReceiveControl { rank, peer, .. } => {
                    halves.entry((peer, rank, true)).or_default().receives.push(place);
                }
                Event::SyncEnd { rank, lane, .. } => {
                    sync_ends.entry((rank, lane)).or_default().push(place);
                }
                _ => {}
            }
        }
        let (messages, arrivals, unjoined) = (Vec::new(), Vec::new(), Vec::new());
        let mut this = Self {
            timeline,
            layout: timeline.layout(),
            messages,
            arrivals,
            halves: unjoined,
            sync_ends,
            unmatched_sends: 0,
            unmatched_receives: 0,
            early_receives: 0,
        };
        let number = |place: &RecordIndex| number_and_time(timeline, *place);
        this.sync_ends.values_mut().for_each(|ends| ends.sort_by_key(number));
        let sends = halves.values().map(|halves| halves.sends.len().min(halves.receives.len()));
        this.messages.reserve_exact(sends.sum());
        for ((from, to, _), halves) in halves {
            this.join(halves, (from, to));
        }
        this.halves.sort_by_key(|place| half_ns(timeline, *place));
        let called_ns = |message: &Message| sent(timeline, message.send).called_ns;
        this.messages.sort_by_key(called_ns);
        this.early_receives =
            this.messages.iter().filter(|message| is_early(timeline, **message)).count() as u64;
        this.arrivals = (0..this.messages.len() as u32).collect();
        let arrived_ns =
            |index: &u32| times(timeline, this.messages[*index as usize]).physical_receive_ns;
        this.arrivals.sort_by_key(arrived_ns);
        this
    }

    /// Joins the messages of a sender and a receiver, one of which may be in another process.
    fn join(&mut self, mut halves: Halves, (from, to): (u32, u32)) {
        let timeline = self.timeline;
        let key = |place: &RecordIndex| number_and_time(timeline, *place);
        let number = |place: &RecordIndex| key(place).0;
        halves.sends.sort_by_key(key);
        halves.receives.sort_by_key(key);
        let (mut sends, mut lone_receives) = (Vec::new(), Vec::new());
        let mut receives = halves.receives.iter().peekable();
        for send in &halves.sends {
            while let Some(receive) = receives.next_if(|receive| number(receive) < number(send)) {
                lone_receives.push(*receive);
            }
            match receives.next_if(|receive| number(receive) == number(send)) {
                Some(&receive) => self.messages.push(Message { send: *send, receive }),
                None => sends.push(*send),
            }
        }
        lone_receives.extend(receives);
        // A send on behalf of another process is that of a get which has not ended.
        match (self.layout.is_here(from), self.layout.is_here(to)) {
            (true, false) => self.halves.append(&mut sends),
            (false, true) => self.halves.append(&mut lone_receives),
            _ => {}
        }
        self.unmatched_sends += sends.len() as u64;
        self.unmatched_receives += lone_receives.len() as u64;
    }

    /// Iterates over the messages by logical send.
    pub(super) fn lines(&self) -> impl Iterator<Item = Communication> {
        self.messages.iter().map(|message| self.line(*message))
    }

    /// Iterates over the arrivals by time.
    pub(super) fn arrivals(&self) -> impl Iterator<Item = Arrival> {
        self.arrivals.iter().map(|index| self.arrival(self.messages[*index as usize]))
    }

    /// Iterates over the halves of messages by time.
    pub(super) fn halves(&self) -> impl Iterator<Item = Half> {
        self.halves.iter().map(|place| self.half(*place))
    }

    fn half(&self, place: RecordIndex) -> Half {
        let timeline = self.timeline;
        match timeline.records().get(place).1.event {
            Event::Send { peer, message, .. } => {
                let Sent { from, called_ns, sent_ns, bytes, kind } = sent(timeline, place);
                let waited_ns = sent_ns - called_ns;
                let values = [
                    i64::from(peer) + 1,
                    exact(message),
                    exact(bytes),
                    kind.number(),
                    exact(waited_ns),
                ];
                Half { time_ns: sent_ns, at: from, values: paired(EventKind::SENT, values) }
            }
            Event::Receive { peer, message, .. }
            | Event::ReceiveTagged { peer, message, .. }
            | Event::ReceiveControl { peer, message, .. } => {
                let Received { at, arrived_ns, until } = received(timeline, place);
                let (tag, complete_ns) = self.completion(at.rank, &until, arrived_ns);
                let values = [
                    i64::from(peer) + 1,
                    exact(message),
                    exact(tag),
                    until.lane().map_or(0, |lane| i64::from(lane) + 1),
                    exact(complete_ns - arrived_ns),
                ];
                Half { time_ns: arrived_ns, at, values: paired(EventKind::RECEIVED, values) }
            }
            _ => unreachable!("the place of a send or a receive"),
        }
    }

    /// Returns the tag of a message that has arrived, and the time of its logical receive.
    fn completion(&self, rank: u32, until: &Until, arrived_ns: u64) -> (u64, u64) {
        let (tag, complete_ns) = match *until {
            // All but control messages have tags of one form.
            Until::Sync(lane, round) => {
                let end_ns = self.sync_end(rank, lane, round, arrived_ns);
                (MessageKind::Put.tag(round), end_ns)
            }
            Until::Complete(tag, complete_ns) => (tag.into(), Some(complete_ns)),
            Until::Arrival(kind, _, round) => (kind.tag(round), None),
        };
        (tag, complete_ns.unwrap_or(arrived_ns).max(arrived_ns))
    }

    fn line(&self, message: Message) -> Communication {
        let Times { physical_send_ns, physical_receive_ns } = times(self.timeline, message);
        let sent = sent(self.timeline, message.send);
        let received = received(self.timeline, message.receive);
        let Received { at, arrived_ns, until } = &received;
        let (tag, logical_receive_ns) = self.completion(at.rank, until, *arrived_ns);
        // Another process has the workers of a rank from which this one gets data.
        let rank = sent.from.rank;
        let is_here = self.layout.is_here(rank);
        let sender = if is_here { sent.from } else { self.layout.first_thread(rank) };
        Communication {
            sender,
            logical_send_ns: sent.called_ns,
            physical_send_ns,
            receiver: received.at,
            logical_receive_ns: logical_receive_ns.max(physical_receive_ns),
            physical_receive_ns,
            bytes: sent.bytes,
            tag,
        }
    }

    /// Returns the end of the sync that covers an arrival.
    fn sync_end(&self, rank: u32, lane: u32, round: u64, arrived_ns: u64) -> Option<u64> {
        let ends = self.sync_ends.get(&(rank, lane))?;
        let key = |place: RecordIndex| number_and_time(self.timeline, place);
        let covering = ends.partition_point(|end| key(*end) < (round, arrived_ns));
        let (of_round, end_ns) = key(*ends.get(covering)?);
        (of_round == round).then_some(end_ns)
    }

    fn arrival(&self, message: Message) -> Arrival {
        let Times { physical_send_ns, physical_receive_ns } = times(self.timeline, message);
        let sent = sent(self.timeline, message.send);
        let received = received(self.timeline, message.receive);
        Arrival {
            time_ns: physical_receive_ns,
            at: received.at,
            kind: sent.kind,
            lane: received.until.lane(),
            latency_ns: physical_receive_ns - physical_send_ns,
            waited_ns: physical_send_ns - sent.called_ns,
        }
    }
}

/// Returns the time of a half: where data leaves, or arrives.
fn half_ns(timeline: &Timeline<'_>, place: RecordIndex) -> u64 {
    match timeline.records().get(place).1.event {
        Event::Send { .. } => sent(timeline, place).sent_ns,
        _ => received(timeline, place).arrived_ns,
    }
}

/// Returns the number of a message or round, and the time of its record.
fn number_and_time(timeline: &Timeline<'_>, place: RecordIndex) -> (u64, u64) {
    let (_, record) = timeline.records().get(place);
    let number = match record.event {
        Event::Send { message, .. }
        | Event::Receive { message, .. }
        | Event::ReceiveControl { message, .. }
        | Event::ReceiveTagged { message, .. } => message,
        Event::SyncEnd { round, .. } => round,
        _ => unreachable!("only those are kept"),
    };
    (number, record.time_ns)
}

fn sent(timeline: &Timeline<'_>, place: RecordIndex) -> Sent {
    let (worker, record) = timeline.records().get(place);
    let Event::Send { kind, rank, bytes, waited, .. } = record.event else {
        unreachable!("the place of a send")
    };
    let called_ns = record.time_ns.saturating_sub(waited.as_nanos());
    Sent { from: Thread { rank, worker }, called_ns, sent_ns: record.time_ns, bytes, kind }
}

fn received(timeline: &Timeline<'_>, place: RecordIndex) -> Received {
    let (worker, record) = timeline.records().get(place);
    let time_ns = record.time_ns;
    match record.event {
        Event::Receive { rank, lane, round, .. } => Received {
            at: Thread { rank, worker },
            arrived_ns: time_ns,
            until: Until::Sync(lane, round),
        },
        Event::ReceiveControl { kind, rank, lane, round, .. } => Received {
            at: Thread { rank, worker },
            arrived_ns: time_ns,
            until: Until::Arrival(kind, lane, round),
        },
        Event::ReceiveTagged { rank, tag, arrived, .. } => Received {
            at: Thread { rank, worker },
            arrived_ns: time_ns.saturating_sub(arrived.as_nanos()),
            until: Until::Complete(tag, time_ns),
        },
        _ => unreachable!("the place of a receive"),
    }
}

fn paired(kinds: [EventKind; 5], values: [i64; 5]) -> [(EventKind, i64); 5] {
    std::array::from_fn(|index| (kinds[index], values[index]))
}

/// Returns a number as a value that is exact.
fn exact(number: u64) -> i64 {
    (number % EXACT_LIMIT) as i64
}

/// Returns `true` if a message has arrived before its call.
fn is_early(timeline: &Timeline<'_>, message: Message) -> bool {
    received(timeline, message.receive).arrived_ns < sent(timeline, message.send).called_ns
}

fn times(timeline: &Timeline<'_>, message: Message) -> Times {
    let (sent, received) = (sent(timeline, message.send), received(timeline, message.receive));
    let is_early = received.arrived_ns < sent.called_ns;
    let physical_send_ns =
        if is_early { sent.sent_ns } else { sent.sent_ns.min(received.arrived_ns) };
    Times { physical_send_ns, physical_receive_ns: received.arrived_ns.max(physical_send_ns) }
}
