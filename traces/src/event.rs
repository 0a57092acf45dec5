//! Events that a worker can record: small `Copy` values that fill 40 bytes together with their
//! time.
//!
//! Ranks, lanes, rounds and messages are plain numbers here: this crate gives them no meaning
//! beyond the text of the variants.

use crate::{LabelId, MessageKind, State, SyncMode};

/// Event on a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The worker has been inside the body of a task: from the begin of the body, or from where a
    /// suspended task went on, to its end or its suspension. Recorded then.
    ///
    /// Slices of one worker nest: a slice inside another one interrupts it.
    TaskSlice {
        /// `true` for the first slice of the task.
        starts: bool,
        /// Rank that the task belongs to.
        rank: u32,
        /// Number of the task, at least 1 and below 2^53: Paraver shows 0 as no task, and rounds
        /// larger numbers. Other numbers are folded into that range.
        task: u64,
        /// Name of the task.
        label: LabelId,
        /// Time at which the slice began.
        began_ns: u64,
    },
    /// The worker has been in a state, which ends with this record. Nests with slices of tasks;
    /// outside both a worker is [`Scheduling`](State::Scheduling).
    StateSlice {
        /// State of the worker.
        state: State,
        /// Time at which the state began.
        began_ns: u64,
    },
    /// The worker has had no task, which ends with this record.
    Idle {
        /// Time at which that began.
        began_ns: u64,
        /// Smallest number of tasks, of those that this worker might run, which were ready at other
        /// workers meanwhile.
        ready: u32,
    },
    /// The program has been inside a span of its own, which ends with this record. Nests with slices
    /// of tasks; a task that runs inside it hides it.
    SpanSlice {
        /// Name of the span.
        label: LabelId,
        /// Time at which it was entered.
        began_ns: u64,
    },
    /// Event of the program, without length.
    Mark {
        /// Name of the event.
        label: LabelId,
    },
    /// Number of the program, which holds until the next one of that name on the same row.
    Counter {
        /// Name of the number.
        label: LabelId,
        /// The number, drawn exactly up to 2^53.
        value: i64,
    },
    /// The program of a rank waits, or no longer waits, for its own tasks to become fewer.
    Throttle {
        /// Rank whose program it is.
        rank: u32,
        /// `true` if it waits from now on.
        waits: bool,
    },
    /// A task has become ready, as the last task that it waited for has released it, or has
    /// spawned or woken it: an edge of the graph.
    Ready {
        /// Rank that the task belongs to.
        rank: u32,
        /// Number of the task.
        task: u64,
        /// Number of the task that it waited for; 0 if something beside tasks has woken it.
        by: u64,
    },
    /// A rank begins to wait for the end of a round.
    SyncBegin {
        /// Rank that waits.
        rank: u32,
        /// Lane whose round ends.
        lane: u32,
        /// Number of the round, from 0.
        round: u64,
        /// Mode of the sync that ends the round.
        mode: SyncMode,
        /// Number of arrivals that the round waits for, if known.
        expected: Option<u32>,
    },
    /// The round has ended for this rank; any worker may record it.
    SyncEnd {
        /// Rank that waited.
        rank: u32,
        /// Lane whose round ended.
        lane: u32,
        /// Number of the round, from 0.
        round: u64,
        /// Time since the end was asked for and all operations of the rank were posted: the cost
        /// of the sync.
        posted: WaitNs,
        /// Time since the last arrival; since all was posted if there was none.
        arrived: WaitNs,
    },
    /// Data leaves the rank that owns it, or a control message its sender. Recorded at the physical send.
    Send {
        /// Kind of the operation.
        kind: MessageKind,
        /// Sender; for a get, the owner of the data.
        rank: u32,
        /// Receiver.
        peer: u32,
        /// Number that matches the receive; unique for this sender and receiver, among control messages
        /// or among the others.
        message: u64,
        /// Size of the data.
        bytes: u64,
        /// Time since the call that caused the send (the logical send).
        waited: WaitNs,
    },
    /// Data has arrived. Recorded at the physical arrival; the logical one is
    /// the [`SyncEnd`](Self::SyncEnd) of the same rank, lane and round, or the
    /// physical one if the trace has none.
    Receive {
        /// Receiver.
        rank: u32,
        /// Sender.
        peer: u32,
        /// Number that matches the [`Send`](Self::Send).
        message: u64,
        /// Lane that the message belongs to.
        lane: u32,
        /// Round that the message belongs to.
        round: u64,
    },
    /// A control message of a sync has arrived. Recorded at its arrival, physical and logical: its receiver
    /// takes it in at once.
    ReceiveControl {
        /// Kind of the message, that of its [`Send`](Self::Send).
        kind: MessageKind,
        /// Receiver.
        rank: u32,
        /// Sender.
        peer: u32,
        /// Number that matches the send; unique for this sender and receiver among control messages.
        message: u64,
        /// Lane of the sync.
        lane: u32,
        /// Round of the sync.
        round: u64,
    },
    /// A message has arrived that the receiver has asked for with a tag. Recorded at its logical
    /// receive.
    ReceiveTagged {
        /// Receiver.
        rank: u32,
        /// Sender.
        peer: u32,
        /// Number that matches the [`Send`](Self::Send).
        message: u64,
        /// Tag of the program.
        tag: u32,
        /// Time since the data was there.
        arrived: WaitNs,
    },
    /// A number to draw over time.
    Value {
        /// Rank that the number belongs to.
        rank: u32,
        /// Kind of the number.
        kind: ValueKind,
        /// The number, drawn exactly up to 2^53.
        value: i64,
    },
    /// The stream is full, so later events of this worker are missing. The stream records this
    /// event itself, once.
    RecordingStopped,
}

impl Event {
    /// Returns the rank that the event belongs to, for a caller whose groups are the trace's ranks;
    /// `None` if it is about a worker alone.
    pub fn group(&self) -> Option<u32> {
        self.ranks()[0]
    }

    /// Returns the ranks in the event.
    pub(crate) fn ranks(&self) -> [Option<u32>; 2] {
        match *self {
            Self::StateSlice { .. }
            | Self::Idle { .. }
            | Self::SpanSlice { .. }
            | Self::Mark { .. }
            | Self::Counter { .. }
            | Self::RecordingStopped => [None, None],
            Self::TaskSlice { rank, .. }
            | Self::Throttle { rank, .. }
            | Self::Ready { rank, .. }
            | Self::SyncBegin { rank, .. }
            | Self::SyncEnd { rank, .. }
            | Self::Value { rank, .. } => [Some(rank), None],
            Self::Send { rank, peer, .. }
            | Self::Receive { rank, peer, .. }
            | Self::ReceiveControl { rank, peer, .. }
            | Self::ReceiveTagged { rank, peer, .. } => [Some(rank), Some(peer)],
        }
    }

    /// Creates a [`TaskSlice`](Self::TaskSlice) for a caller whose groups are the trace's ranks.
    pub const fn task_slice(
        group: u32,
        task: u64,
        label: LabelId,
        began_ns: u64,
        starts: bool,
    ) -> Self {
        Self::TaskSlice { starts, rank: group, task, label, began_ns }
    }

    /// Creates a [`Throttle`](Self::Throttle) for such a caller.
    pub const fn throttle(group: u32, waits: bool) -> Self {
        Self::Throttle { rank: group, waits }
    }

    /// Creates a [`Ready`](Self::Ready) for such a caller.
    pub const fn ready(group: u32, task: u64, by: u64) -> Self {
        Self::Ready { rank: group, task, by }
    }

    /// Creates a [`Value`](Self::Value) for such a caller.
    pub const fn value(group: u32, kind: ValueKind, value: i64) -> Self {
        Self::Value { rank: group, kind, value }
    }

    /// Returns the event without what was before `from_ns`.
    pub(crate) fn from(mut self, from_ns: u64) -> Self {
        match &mut self {
            Self::TaskSlice { began_ns, starts, .. } if *began_ns < from_ns => {
                (*began_ns, *starts) = (from_ns, false);
            }
            Self::StateSlice { began_ns, .. }
            | Self::Idle { began_ns, .. }
            | Self::SpanSlice { began_ns, .. } => {
                *began_ns = (*began_ns).max(from_ns);
            }
            _ => {}
        }
        self
    }

    /// Returns the time at which a slice began; `None` for an event without length.
    pub(crate) fn began_ns(&self) -> Option<u64> {
        match *self {
            Self::TaskSlice { began_ns, .. }
            | Self::StateSlice { began_ns, .. }
            | Self::SpanSlice { began_ns, .. }
            | Self::Idle { began_ns, .. } => Some(began_ns),
            _ => None,
        }
    }
}

/// Kind of the number in an [`Event::Value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ValueKind {
    /// Level of requests that are posted and not completed. Holds until the next value of that
    /// rank, recorded by any worker.
    OutstandingRequests,
    /// Number of completions found by one pass over the completion queues.
    PollCompletions,
    /// Tag of a receive that is posted, plus 1; 1 beyond the largest tag if it takes any.
    ReceivePosted,
    /// Number of tasks in the queues of the worker, most of them of this rank.
    TasksReady,
    /// Number of tasks of the rank that are created and not done, recorded by any worker.
    TasksNotDone,
    /// 1 from where the timed part of the rank's program begins to where it ends, then 0.
    TimedPart,
    /// Number of steps of the program that are complete.
    Step,
    /// Number of tasks of the rank that slow cores, which no worker stands for, still compute.
    SlowCores,
}

impl ValueKind {
    /// All kinds, by increasing number.
    pub(crate) const ALL: [Self; 8] = [
        Self::OutstandingRequests,
        Self::PollCompletions,
        Self::ReceivePosted,
        Self::TasksReady,
        Self::TasksNotDone,
        Self::TimedPart,
        Self::Step,
        Self::SlowCores,
    ];
}

/// Time between two moments, in 32 bits, which keep a record within 40 bytes.
///
/// **Units**: nanoseconds. Exact below 2.1 s, then rounded down to 1,024 ns; saturates at 36
/// minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WaitNs(u32);

impl WaitNs {
    /// Bit of times in units of 1,024 ns.
    const COARSE: u32 = 1 << 31;
    const COARSE_SHIFT: u32 = 10;

    /// Returns the time from `from_ns` to `to_ns`; 0 if they are out of order.
    pub const fn between(from_ns: u64, to_ns: u64) -> Self {
        let waited = to_ns.saturating_sub(from_ns);
        if waited < Self::COARSE as u64 {
            return Self(waited as u32);
        }
        let units = waited >> Self::COARSE_SHIFT;
        let most = Self::COARSE - 1;
        Self(Self::COARSE | if units > most as u64 { most } else { units as u32 })
    }

    /// Returns the time in the form that a file keeps.
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the time of [`bits`](Self::bits).
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the time in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        let units = (self.0 & !Self::COARSE) as u64;
        if self.0 < Self::COARSE { units } else { units << Self::COARSE_SHIFT }
    }
}

/// Event with its time, as stored by a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) time_ns: u64,
    pub(crate) event: Event,
}

const _: () = assert!(size_of::<Record>() <= 40, "a record has grown: see the module text");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_exact_then_rounded_and_saturate() {
        assert_eq!(WaitNs::between(10, 25).as_nanos(), 15);
        assert_eq!(WaitNs::between(25, 10).as_nanos(), 0);
        let exact = (1 << 31) - 1;
        assert_eq!(WaitNs::between(0, exact).as_nanos(), exact);
        assert_eq!(WaitNs::between(0, exact + 1).as_nanos(), exact + 1);
        assert_eq!(WaitNs::between(0, exact + 1_024).as_nanos(), exact + 1);
        assert_eq!(WaitNs::between(0, u64::MAX).as_nanos(), exact << 10);
    }

    #[test]
    fn waits_are_ordered_as_times() {
        let times = [0, 1, (1 << 31) - 1, 1 << 31, 1 << 33, u64::MAX];
        assert!(times.map(|to_ns| WaitNs::between(0, to_ns)).is_sorted());
    }
}
