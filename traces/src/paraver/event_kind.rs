//! Event types of our traces. Tasks use ovni's numbers, so that views made for ovni open our
//! traces; the rest are our own. A test compares the table in `README.md` with this file.

use crate::{IdleCause, MessageKind, SyncMode, ValueKind};

/// Event type of our traces. The value 0 always means the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum EventKind {
    /// Number of the running task.
    TaskId = 10,
    /// Name of the running task: index of its label, plus 1.
    TaskType = 11,
    /// Name of the innermost span that the program is in: index of its label, plus 1. ovni's marks.
    Span = 100,
    /// Name of an event of the program: index of its label, plus 1.
    Mark = 101,
    /// [`SyncMode::number`] of the latest sync that began on this thread and has not ended.
    SyncMode = 95_000_001,
    /// Lane of the sync, plus 1.
    SyncLane = 95_000_002,
    /// Round of the sync, plus 1.
    SyncRound = 95_000_003,
    /// Arrivals that the sync waits for; 0 also if not known.
    SyncExpected = 95_000_004,
    /// Round that has ended, plus 1, on the row of the worker that saw it end.
    SyncEnded = 95_000_005,
    /// Nanoseconds from where the end of the round was asked for.
    SyncAsked = 95_000_006,
    /// Nanoseconds from where the rank's own operations were done, too: the cost of the sync.
    SyncOwnWorkDone = 95_000_007,
    /// Nanoseconds from the last arrival of the round.
    SyncArrivalsComplete = 95_000_008,
    /// [`SyncMode::number`] of the sync that ended the round.
    SyncEndedMode = 95_000_009,
    /// Rounds of the rank whose end was asked for and has not come, on its first thread.
    RoundsOpen = 95_000_010,
    /// Outstanding requests of the rank, on its first thread.
    OutstandingRequests = 95_000_011,
    /// Number of completions found by one pass over the completion queues.
    PollCompletions = 95_000_012,
    /// [`MessageKind::number`] of an operation or message that has just arrived.
    MessageKind = 95_000_013,
    /// Lane of an operation that has just arrived, plus 1.
    MessageLane = 95_000_014,
    /// Tag of a receive that has just been posted, plus 1; 2^32 if it takes any.
    ReceivePosted = 95_000_015,
    /// Nanoseconds from where the data of a put that has just arrived left.
    PutLatency = 95_000_016,
    /// Nanoseconds from the call of such a put to where its data left.
    WindowWait = 95_000_017,
    /// Name of a task, once, where its body begins: index of its label, plus 1.
    TaskStarted = 95_000_021,
    /// [`IdleCause::number`] of a worker without a task.
    IdleBecause = 95_000_022,
    /// Tasks in the queues of a worker, now and then.
    TasksReady = 95_000_023,
    /// Tasks of the rank that are created and not done, now and then, on its first thread.
    TasksNotDone = 95_000_024,
    /// 1 inside the timed part of the rank's program, on its first thread.
    TimedPart = 95_000_025,
    /// Steps of the program that are complete.
    Step = 95_000_026,
    /// Tasks of the rank that slow cores compute, on its first thread.
    SlowCores = 95_000_027,
    /// Number of a task that has become ready; the next goes with it.
    TaskReady = 95_000_028,
    /// Number of the task that the other has waited for; 0 for none.
    ReadyBy = 95_000_029,
    /// Receiver of a message to another process, plus 1, where its data leaves; the next four go with it.
    SentTo = 95_000_031,
    /// Number by which the other half of the message is found.
    SentNumber = 95_000_032,
    /// Size of the data.
    SentBytes = 95_000_033,
    /// [`MessageKind::number`] of the message.
    SentKind = 95_000_034,
    /// Nanoseconds from the call that caused the send.
    SentWaited = 95_000_035,
    /// Sender of a message from another process, plus 1, where its data arrives; the next four go with it.
    ReceivedFrom = 95_000_036,
    /// Number by which the other half of the message is found.
    ReceivedNumber = 95_000_037,
    /// Tag of the program, or round of a one-sided operation.
    ReceivedTag = 95_000_038,
    /// Lane of a one-sided operation, plus 1; 0 for a message with a tag.
    ReceivedLane = 95_000_039,
    /// Nanoseconds to the logical receive.
    ReceivedComplete = 95_000_040,
}

/// Event type of the first number of the program; that of a name is higher by the index of its label.
pub(crate) const FIRST_COUNTER: u32 = 95_100_000;

impl EventKind {
    /// All event types, by increasing number.
    pub const ALL: [Self; 40] = [
        Self::TaskId,
        Self::TaskType,
        Self::Span,
        Self::Mark,
        Self::SyncMode,
        Self::SyncLane,
        Self::SyncRound,
        Self::SyncExpected,
        Self::SyncEnded,
        Self::SyncAsked,
        Self::SyncOwnWorkDone,
        Self::SyncArrivalsComplete,
        Self::SyncEndedMode,
        Self::RoundsOpen,
        Self::OutstandingRequests,
        Self::PollCompletions,
        Self::MessageKind,
        Self::MessageLane,
        Self::ReceivePosted,
        Self::PutLatency,
        Self::WindowWait,
        Self::TaskStarted,
        Self::IdleBecause,
        Self::TasksReady,
        Self::TasksNotDone,
        Self::TimedPart,
        Self::Step,
        Self::SlowCores,
        Self::TaskReady,
        Self::ReadyBy,
        Self::SentTo,
        Self::SentNumber,
        Self::SentBytes,
        Self::SentKind,
        Self::SentWaited,
        Self::ReceivedFrom,
        Self::ReceivedNumber,
        Self::ReceivedTag,
        Self::ReceivedLane,
        Self::ReceivedComplete,
    ];

    /// Types of the send of a message to another process, in the order of its event.
    pub(crate) const SENT: [Self; 5] =
        [Self::SentTo, Self::SentNumber, Self::SentBytes, Self::SentKind, Self::SentWaited];

    /// Types of the receive of a message from another process, in the order of its event.
    pub(crate) const RECEIVED: [Self; 5] = [
        Self::ReceivedFrom,
        Self::ReceivedNumber,
        Self::ReceivedTag,
        Self::ReceivedLane,
        Self::ReceivedComplete,
    ];

    /// Returns the number in the trace.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Returns the type with this number.
    pub(crate) fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Returns `true` if a value lasts until the next one; those of the others belong to their moment.
    pub const fn is_level(self) -> bool {
        match self {
            Self::TaskId
            | Self::TaskType
            | Self::Span
            | Self::SyncMode
            | Self::SyncLane
            | Self::SyncRound
            | Self::SyncExpected
            | Self::RoundsOpen
            | Self::OutstandingRequests
            | Self::IdleBecause
            | Self::TasksReady
            | Self::TasksNotDone
            | Self::TimedPart
            | Self::Step
            | Self::SlowCores => true,
            Self::Mark
            | Self::SyncEnded
            | Self::SyncAsked
            | Self::SyncOwnWorkDone
            | Self::SyncArrivalsComplete
            | Self::SyncEndedMode
            | Self::PollCompletions
            | Self::MessageKind
            | Self::MessageLane
            | Self::ReceivePosted
            | Self::PutLatency
            | Self::WindowWait
            | Self::TaskStarted
            | Self::TaskReady
            | Self::ReadyBy
            | Self::SentTo
            | Self::SentNumber
            | Self::SentBytes
            | Self::SentKind
            | Self::SentWaited
            | Self::ReceivedFrom
            | Self::ReceivedNumber
            | Self::ReceivedTag
            | Self::ReceivedLane
            | Self::ReceivedComplete => false,
        }
    }

    /// Returns `true` if the value is nanoseconds.
    pub(crate) const fn is_time(self) -> bool {
        matches!(
            self,
            Self::SyncAsked
                | Self::SyncOwnWorkDone
                | Self::SyncArrivalsComplete
                | Self::PutLatency
                | Self::WindowWait
                | Self::SentWaited
                | Self::ReceivedComplete
        )
    }

    /// Returns the label in the trace.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TaskId => "Task id",
            Self::TaskType => "Task type",
            Self::Span => "Span",
            Self::Mark => "Event",
            Self::SyncMode => "Sync mode",
            Self::SyncLane => "Sync lane",
            Self::SyncRound => "Sync round",
            Self::SyncExpected => "Sync arrivals expected",
            Self::SyncEnded => "Sync ended",
            Self::SyncAsked => "Sync asked to end",
            Self::SyncOwnWorkDone => "Sync own work done to end",
            Self::SyncArrivalsComplete => "Sync arrivals complete to end",
            Self::SyncEndedMode => "Mode of the sync ended",
            Self::RoundsOpen => "Rounds open",
            Self::OutstandingRequests => "Requests outstanding",
            Self::PollCompletions => "Completions in a poll pass",
            Self::MessageKind => "Message arrived",
            Self::MessageLane => "Lane of the message arrived",
            Self::ReceivePosted => "Receive posted",
            Self::PutLatency => "Put latency",
            Self::WindowWait => "Wait for the window",
            Self::TaskStarted => "Task started",
            Self::IdleBecause => "Idle because",
            Self::TasksReady => "Tasks ready",
            Self::TasksNotDone => "Tasks created and not done",
            Self::TimedPart => "Timed part",
            Self::Step => "Step",
            Self::SlowCores => "Tasks on slow cores",
            Self::TaskReady => "Task ready",
            Self::ReadyBy => "Made ready by",
            Self::SentTo => "Message sent to",
            Self::SentNumber => "Number of the message sent",
            Self::SentBytes => "Bytes sent",
            Self::SentKind => "Kind of the message sent",
            Self::SentWaited => "Wait before the send",
            Self::ReceivedFrom => "Message received from",
            Self::ReceivedNumber => "Number of the message received",
            Self::ReceivedTag => "Tag of the message received",
            Self::ReceivedLane => "Lane of the message received",
            Self::ReceivedComplete => "Wait for the message received",
        }
    }

    /// Returns the labelled values beside 0; empty if the value is a plain number. `task_names` are
    /// the labels of the recorder. Kinds of control messages are among them if the trace `has_control`
    /// messages.
    pub(crate) fn values<'a>(
        self,
        task_names: &[&'a str],
        has_control: bool,
    ) -> Vec<(i64, &'a str)> {
        match self {
            Self::TaskType | Self::TaskStarted | Self::Span | Self::Mark => {
                (1..).zip(task_names.iter().copied()).collect()
            }
            Self::SyncMode | Self::SyncEndedMode => {
                SyncMode::all().map(|mode| (mode.number(), mode.name())).collect()
            }
            Self::MessageKind | Self::SentKind => {
                let kinds =
                    MessageKind::ALL.iter().filter(|kind| has_control || !kind.is_control());
                kinds.map(|kind| (kind.number(), kind.name())).collect()
            }
            Self::IdleBecause => {
                IdleCause::ALL.iter().map(|cause| (cause.number(), cause.name())).collect()
            }
            Self::TimedPart => vec![(1, "timed")],
            _ => Vec::new(),
        }
    }
}

impl From<ValueKind> for EventKind {
    fn from(kind: ValueKind) -> Self {
        match kind {
            ValueKind::OutstandingRequests => Self::OutstandingRequests,
            ValueKind::PollCompletions => Self::PollCompletions,
            ValueKind::ReceivePosted => Self::ReceivePosted,
            ValueKind::TasksReady => Self::TasksReady,
            ValueKind::TasksNotDone => Self::TasksNotDone,
            ValueKind::TimedPart => Self::TimedPart,
            ValueKind::Step => Self::Step,
            ValueKind::SlowCores => Self::SlowCores,
        }
    }
}
