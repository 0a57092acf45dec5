//! States of a worker, with Extrae's numbers, so that the stock views and palettes of Paraver
//! apply.

/// State of a worker.
///
/// The discriminant is the number written into the trace. Tasks set [`State::Running`] implicitly,
/// and the other states apply between task bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// No work.
    Idle = 0,
    /// Inside a task body.
    Running = 1,
    /// The thread does not exist yet, or not any more.
    NotCreated = 2,
    /// Waiting for a message.
    WaitingMessage = 3,
    /// Inside a synchronisation.
    Synchronization = 5,
    /// Testing requests or draining completion queues.
    Polling = 6,
    /// Choosing, submitting or releasing tasks.
    Scheduling = 7,
    /// Waiting for an event other than a message.
    Waiting = 8,
    /// Parked.
    Blocked = 9,
    /// Reading or writing files.
    InputOutput = 12,
    /// Inside a collective operation.
    GroupCommunication = 13,
    /// Unknown, because the stream was full ("others" in Extrae).
    NotRecorded = 15,
    /// Moving memory.
    MemoryTransfer = 17,
    /// Accessing the memory of another rank.
    RemoteMemoryAccess = 20,
    /// Taking a lock shared between ranks.
    DistributedLocking = 23,
    /// Overhead of the runtime.
    Overhead = 24,
    /// Inside a one-sided operation.
    OneSided = 25,
    /// Copying data.
    DataCopy = 28,
    /// Allocating memory.
    Allocating = 30,
    /// Freeing memory.
    Freeing = 31,
}

impl State {
    /// All states, by increasing number.
    pub const ALL: [Self; 20] = [
        Self::Idle,
        Self::Running,
        Self::NotCreated,
        Self::WaitingMessage,
        Self::Synchronization,
        Self::Polling,
        Self::Scheduling,
        Self::Waiting,
        Self::Blocked,
        Self::InputOutput,
        Self::GroupCommunication,
        Self::NotRecorded,
        Self::MemoryTransfer,
        Self::RemoteMemoryAccess,
        Self::DistributedLocking,
        Self::Overhead,
        Self::OneSided,
        Self::DataCopy,
        Self::Allocating,
        Self::Freeing,
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
            Self::WaitingMessage => "Waiting a message",
            Self::Synchronization => "Synchronization",
            Self::Polling => "Polling",
            Self::Scheduling => "Scheduling",
            Self::Waiting => "Waiting",
            Self::Blocked => "Blocked",
            Self::InputOutput => "Input and output",
            Self::GroupCommunication => "Group communication",
            Self::NotRecorded => "Not recorded",
            Self::MemoryTransfer => "Memory transfer",
            Self::RemoteMemoryAccess => "Remote memory access",
            Self::DistributedLocking => "Distributed locking",
            Self::Overhead => "Overhead",
            Self::OneSided => "One-sided operation",
            Self::DataCopy => "Data copy",
            Self::Allocating => "Allocating memory",
            Self::Freeing => "Freeing memory",
        }
    }
}
