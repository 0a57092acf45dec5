//! States of a worker, with Extrae's numbers, so that the stock views and palettes of Paraver
//! apply.

/// State of a worker.
///
/// The discriminant is the number written into the trace. Slices of tasks set [`State::Running`],
/// and the time outside all slices is [`State::Scheduling`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// No work, and polling for some.
    Idle = 0,
    /// Inside a task body.
    Running = 1,
    /// The worker has not begun yet or has ended, or it belongs to another rank.
    NotCreated = 2,
    /// Waiting for other threads at a barrier.
    Synchronization = 5,
    /// Polling for completions and for what tasks wait for.
    Polling = 6,
    /// Choosing, submitting or releasing tasks.
    Scheduling = 7,
    /// No work, and parked.
    Blocked = 9,
    /// Unknown, because the stream was full ("others" in Extrae).
    NotRecorded = 15,
    /// Copying data outside tasks.
    DataCopy = 28,
}

impl State {
    /// All states, by increasing number.
    pub const ALL: [Self; 9] = [
        Self::Idle,
        Self::Running,
        Self::NotCreated,
        Self::Synchronization,
        Self::Polling,
        Self::Scheduling,
        Self::Blocked,
        Self::NotRecorded,
        Self::DataCopy,
    ];

    /// Returns the number in the trace.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Returns the label in the trace.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Running => "Running",
            Self::NotCreated => "Not created",
            Self::Synchronization => "Synchronization",
            Self::Polling => "Polling",
            Self::Scheduling => "Scheduling",
            Self::Blocked => "Blocked",
            Self::NotRecorded => "Not recorded",
            Self::DataCopy => "Data copy",
        }
    }
}
