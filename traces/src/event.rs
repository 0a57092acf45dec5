//! What a worker can record. Events are small `Copy` values: with its time an
//! event fills 40 bytes, whatever its kind.
//!
//! Ranks, lanes, rounds and messages are plain numbers here: this crate gives
//! them no meaning beyond what the variants say.

use crate::{LabelId, State, SyncMode};

/// Something that happened on a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The worker enters the body of a task, for the first time or again after
    /// the task was suspended. Slices of one worker do not nest: one that is
    /// still open ends here.
    TaskBegin {
        /// The rank that the task belongs to.
        rank: u32,
        /// The task's number, from 1 and below 2^53: Paraver shows 0 as no
        /// task and rounds beyond. Others are folded into that range.
        task: u64,
        /// What the task does.
        label: LabelId,
    },
    /// The worker leaves the body of a task: it ended or was suspended.
    TaskEnd {
        /// The rank that the task belongs to.
        rank: u32,
        /// The task's number.
        task: u64,
    },
    /// What the worker does outside task bodies from now on. Recorded inside
    /// a body, it takes effect when that slice ends.
    WorkerState {
        /// The worker's new state.
        state: State,
    },
    /// A rank begins to wait for the end of a round.
    SyncBegin {
        /// The rank that waits.
        rank: u32,
        /// The lane whose round ends.
        lane: u32,
        /// The round, from 0.
        round: u64,
        /// How the round ends.
        mode: SyncMode,
        /// Arrivals that this round waits for, where known.
        expected: Option<u32>,
    },
    /// The round has ended for this rank; any worker may record it.
    SyncEnd {
        /// The rank that waited.
        rank: u32,
        /// The lane whose round ended.
        lane: u32,
        /// The round, from 0.
        round: u64,
    },
    /// Data leaves the rank that owns it. Recorded at the physical send.
    Send {
        /// The sender: for a get, the owner of the data.
        rank: u32,
        /// The receiver.
        peer: u32,
        /// Matches the [`Receive`](Self::Receive); unique for this sender and
        /// receiver, best below 2^53.
        message: u64,
        /// Size of the data.
        bytes: u64,
        /// Time since the call that asked for it (the logical send).
        waited: WaitNs,
    },
    /// Data has arrived. Recorded at the physical arrival; the logical one is
    /// the [`SyncEnd`](Self::SyncEnd) of the same rank, lane and round, or the
    /// physical one if the trace has none.
    Receive {
        /// The receiver.
        rank: u32,
        /// The sender.
        peer: u32,
        /// Matches the [`Send`](Self::Send).
        message: u64,
        /// The lane that the message belongs to.
        lane: u32,
        /// The round that the message belongs to.
        round: u64,
    },
    /// A number worth drawing over time.
    Value {
        /// The rank that it belongs to.
        rank: u32,
        /// What is counted.
        kind: ValueKind,
        /// The number; drawn exactly up to 2^53.
        value: i64,
    },
    /// The stream is full: nothing is known of this worker from here on. The
    /// stream records this itself, once.
    RecordingStopped,
}

impl Event {
    /// The ranks that the event names.
    pub(crate) fn ranks(&self) -> [Option<u32>; 2] {
        match *self {
            Self::WorkerState { .. } | Self::RecordingStopped => [None, None],
            Self::TaskBegin { rank, .. }
            | Self::TaskEnd { rank, .. }
            | Self::SyncBegin { rank, .. }
            | Self::SyncEnd { rank, .. }
            | Self::Value { rank, .. } => [Some(rank), None],
            Self::Send { rank, peer, .. } | Self::Receive { rank, peer, .. } => {
                [Some(rank), Some(peer)]
            }
        }
    }
}

impl Event {
    /// A [`TaskBegin`](Self::TaskBegin) in the trace's rows of `group`, for whom ranks are groups.
    pub const fn task_begin(group: u32, task: u64, label: LabelId) -> Self {
        Self::TaskBegin { rank: group, task, label }
    }

    /// A [`TaskEnd`](Self::TaskEnd) in the trace's rows of `group`.
    pub const fn task_end(group: u32, task: u64) -> Self {
        Self::TaskEnd { rank: group, task }
    }
}

/// What an [`Event::Value`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ValueKind {
    /// Requests posted and not completed: a level, which holds until the next
    /// value of that rank, whichever worker records it.
    OutstandingRequests,
    /// Completions found by one pass over the completion queues.
    PollCompletions,
}

/// Time between a call and the send it led to.
///
/// **Units**: nanoseconds, saturating at 4.29 s: 32 bits keep a record within
/// 40 bytes, and a line that starts 4.29 s early looks no different from one
/// that starts earlier still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WaitNs(u32);

impl WaitNs {
    /// The time from `called_ns` to `sent_ns`; none if they are out of order.
    pub const fn between(called_ns: u64, sent_ns: u64) -> Self {
        let waited = sent_ns.saturating_sub(called_ns);
        Self(if waited > u32::MAX as u64 { u32::MAX } else { waited as u32 })
    }

    /// The time in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0 as u64
    }
}

/// An event with its time: what a stream stores.
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
    fn waits_saturate_at_both_ends() {
        assert_eq!(WaitNs::between(10, 25).as_nanos(), 15);
        assert_eq!(WaitNs::between(25, 10).as_nanos(), 0);
        assert_eq!(WaitNs::between(0, u64::from(u32::MAX)).as_nanos(), u64::from(u32::MAX));
        assert_eq!(WaitNs::between(0, 1 << 32).as_nanos(), u64::from(u32::MAX));
    }
}
