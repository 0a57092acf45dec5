//! The trace events of the communication of one rank.
//!
//! Sender and receiver both count messages, and so give one the same number. Within a process operations
//! arrive in the order of their numbers. Between processes those of one lane may overtake those of
//! another, so lanes are counted apart, as far as there are counters: of two lanes that share one, a
//! message may get the lane of another. A number is taken before its message is sent, so that no message
//! is found to arrive before its call.
//!
//! Control messages of syncs, which are recorded if the recorder keeps them, arrive in the order in which they
//! are posted. They are counted by themselves: where they are posted and where they are taken in, by the
//! thread inside the engine of each rank.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use talpf_runtime::Group;
use talpf_traces::{Event, MessageKind, Recorder, ValueKind, WaitNs};

use crate::numbers::{LaneNumber, Rank, Round};
use crate::operation::{Transfer, Verb};
use crate::sender::RoundState;

/// Lane of operations outside rounds in traces, behind all others.
const OUTSIDE_ROUNDS: u32 = 256;

/// Counters of messages with a peer if there are several processes: the last is that of operations outside
/// rounds, and lanes share the others.
const COUNTERS_BETWEEN_PROCESSES: u32 = 9;

/// Records the events of one rank, with the numbers of messages, which match sends with arrivals:
/// requests of one queue pair arrive in order, so both sides count.
pub(crate) struct Tracer {
    traced: bool,
    keeps_control: bool,
    /// Set once nothing more of the rank is recorded.
    stopped: AtomicBool,
    rank: Rank,
    group: Group,
    /// Counters of each peer in the next two.
    counters: u32,
    /// Number of announced operations to every rank.
    sent: Box<[AtomicU64]>,
    /// Number of announced operations from every rank.
    arrived: Box<[AtomicU64]>,
    /// Number of gets from every rank.
    gets: Box<[AtomicU64]>,
    /// Number of control messages to every rank.
    control_sent: Box<[AtomicU64]>,
    /// Number of control messages from every rank.
    control_arrived: Box<[AtomicU64]>,
}

impl Tracer {
    /// Creates the recorder of a rank that communicates with `ranks` ranks, all in this process or not.
    pub(crate) fn new(
        recorder: Option<&Recorder>,
        group: &Group,
        ranks: u32,
        has_processes: bool,
    ) -> Self {
        let (traced, keeps_control) =
            (recorder.is_some(), recorder.is_some_and(Recorder::keeps_control));
        let peers = if traced { ranks as usize } else { 0 };
        let counters = if has_processes { COUNTERS_BETWEEN_PROCESSES } else { 1 };
        let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        let control = || zeros(if keeps_control { peers } else { 0 });
        let announced = || zeros(peers * counters as usize);
        let (rank, group) = (Rank(group.number()), group.clone());
        let stopped = AtomicBool::new(false);
        Tracer {
            traced,
            keeps_control,
            stopped,
            rank,
            group,
            counters,
            sent: announced(),
            arrived: announced(),
            gets: zeros(peers),
            control_sent: control(),
            control_arrived: control(),
        }
    }

    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.traced && !self.stopped.load(Ordering::Relaxed)
    }

    /// Returns `true` if control messages are recorded.
    #[inline]
    pub(crate) fn keeps_control(&self) -> bool {
        self.keeps_control && !self.stopped.load(Ordering::Relaxed)
    }

    /// Ends the recording of the rank.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns the time, for events that need it before they are recorded; 0 if not traced.
    #[inline]
    pub(crate) fn clock(&self) -> u64 {
        if self.is_traced() { self.group.clock().now_ns().max(1) } else { 0 }
    }

    /// Records that an operation of a lane, or outside rounds, is about to be posted, unless recorded
    /// before.
    #[inline]
    pub(crate) fn send(&self, at: &mut Transfer, verb: Verb, lane: Option<LaneNumber>) {
        if self.is_traced() {
            self.record_send(at, verb, lane);
        }
    }

    /// Draws the next number of a message with a peer.
    fn next(&self, of: &[AtomicU64], peer: Rank, lane: Option<LaneNumber>) -> u64 {
        let last = self.counters - 1;
        let counter = match lane {
            Some(lane) if last > 0 => u32::from(lane.0) % last,
            _ => last,
        };
        let count = &of[peer.index() * self.counters as usize + counter as usize];
        let count = count.fetch_add(1, Ordering::Relaxed);
        count * u64::from(self.counters) + u64::from(counter)
    }

    #[cold]
    fn record_send(&self, at: &mut Transfer, verb: Verb, lane: Option<LaneNumber>) {
        let called_ns = std::mem::take(&mut at.called_ns);
        if called_ns == 0 {
            return;
        }
        let number = self.next(&self.sent, at.target, lane);
        let bytes = if verb == Verb::Put { at.bytes } else { 0 };
        let kind = match verb {
            Verb::Put => MessageKind::Put,
            Verb::Get => MessageKind::GetNotice,
            Verb::FetchAdd { .. } => MessageKind::FetchAndAdd,
            Verb::CompareSwap { .. } => MessageKind::CompareAndSwap,
        };
        self.group.trace(|now_ns| Event::Send {
            kind,
            rank: self.rank.0,
            peer: at.target.0,
            message: announced(number),
            bytes,
            waited: WaitNs::between(called_ns, now_ns),
        });
    }

    /// Records the arrival of an announced operation. Returns the time; 0 if this thread has no
    /// stream.
    pub(crate) fn arrival(&self, source: Rank, lane: LaneNumber, round: Round) -> u64 {
        let number = self.next(&self.arrived, source, Some(lane));
        self.record_receive(source, announced(number), lane, round)
    }

    /// Records the arrival of an operation outside rounds: one of a lane behind all others, whose
    /// rounds are the ids.
    pub(crate) fn arrival_outside_rounds(&self, source: Rank, id: u32) {
        let number = self.next(&self.arrived, source, None);
        self.record(source, announced(number), OUTSIDE_ROUNDS, u64::from(id));
    }

    fn record_receive(&self, source: Rank, message: u64, lane: LaneNumber, round: Round) -> u64 {
        self.record(source, message, u32::from(lane.0), round.0)
    }

    fn record(&self, source: Rank, message: u64, lane: u32, round: u64) -> u64 {
        let (rank, peer) = (self.rank.0, source.0);
        let mut arrived_ns = 0;
        self.group.trace(|now_ns| {
            arrived_ns = now_ns;
            Event::Receive { rank, peer, message, lane, round }
        });
        arrived_ns
    }

    /// Returns the time, for a control message that is about to be posted; 0 if none are recorded.
    #[inline]
    pub(crate) fn control_clock(&self) -> u64 {
        if self.keeps_control() { self.clock() } else { 0 }
    }

    /// Records that a control message was posted, first tried at a time that
    /// [`control_clock`](Self::control_clock) has returned.
    #[cold]
    pub(crate) fn control_sent(&self, target: Rank, kind: MessageKind, called_ns: u64) {
        let (rank, peer) = (self.rank.0, target.0);
        let message = self.control_sent[target.index()].fetch_add(1, Ordering::Relaxed);
        self.group.trace(|now_ns| {
            let waited = WaitNs::between(called_ns, now_ns);
            Event::Send { kind, rank, peer, message, bytes: 0, waited }
        });
    }

    /// Records the arrival of a control message, for a caller that knows that these are recorded.
    #[cold]
    pub(crate) fn control_arrived(
        &self,
        source: Rank,
        kind: MessageKind,
        lane: LaneNumber,
        round: Round,
    ) {
        let (rank, peer, lane, round) = (self.rank.0, source.0, u32::from(lane.0), round.0);
        let message = self.control_arrived[source.index()].fetch_add(1, Ordering::Relaxed);
        self.group.trace(|_| Event::ReceiveControl { kind, rank, peer, message, lane, round });
    }

    /// Records the end of a sync whose round was posted, and had its last arrival, at these times;
    /// 0 if not known: then it counts from its end, and the arrivals from where it was posted.
    pub(crate) fn end_sync(&self, round: &RoundState, last_arrival_ns: u64) {
        if self.is_traced() {
            let (rank, lane, number) = (self.rank.0, u32::from(round.lane.0), round.number.0);
            let posted_ns = round.posted_ns();
            self.group.trace(|now_ns| {
                let since = |time_ns, or_ns| match time_ns {
                    0 => or_ns,
                    time_ns => time_ns,
                };
                let posted_ns = since(posted_ns, now_ns);
                Event::SyncEnd {
                    rank,
                    lane,
                    round: number,
                    posted: WaitNs::between(posted_ns, now_ns),
                    arrived: WaitNs::between(since(last_arrival_ns, posted_ns), now_ns),
                }
            });
        }
    }

    /// Records the beginning of a get, which moves data from the target to this rank. Returns the
    /// number of its message, for [`Tracer::end_get`]; `None` if not traced or no get.
    pub(crate) fn begin_get(&self, at: &Transfer, verb: Verb) -> Option<u64> {
        if !self.is_traced() || verb != Verb::Get {
            return None;
        }
        let number = self.gets[at.target.index()].fetch_add(1, Ordering::Relaxed);
        let message = brought(number);
        self.group.trace(|now_ns| Event::Send {
            kind: MessageKind::Get,
            rank: at.target.0,
            peer: self.rank.0,
            message,
            bytes: at.bytes,
            waited: WaitNs::between(at.called_ns, now_ns),
        });
        Some(message)
    }

    /// Records the end of a get.
    pub(crate) fn end_get(&self, target: Rank, message: u64, lane: LaneNumber, round: Round) {
        let _ = self.record_receive(target, message, lane, round);
    }

    /// Records a pass over the completion queues that has found completions.
    pub(crate) fn pass(&self, completions: usize, requests: usize) {
        self.value(ValueKind::PollCompletions, completions);
        self.outstanding(|| requests);
    }

    /// Records the number of requests under way, before a request is posted and after its
    /// completion is taken, so that the last value is that of the end.
    pub(crate) fn outstanding(&self, requests: impl FnOnce() -> usize) {
        if self.is_traced() {
            self.value(ValueKind::OutstandingRequests, requests());
        }
    }

    fn value(&self, kind: ValueKind, value: usize) {
        let rank = self.rank.0;
        self.group.trace(|_| Event::Value { rank, kind, value: value as i64 });
    }
}

/// Returns the number of the message of an announced operation: even, those of gets are odd.
fn announced(number: u64) -> u64 {
    2 * number
}

fn brought(number: u64) -> u64 {
    2 * number + 1
}
