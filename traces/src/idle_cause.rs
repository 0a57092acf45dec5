//! Causes of idleness, as shown in a trace.

/// Reason why a worker has no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum IdleCause {
    /// No task is ready and nothing is awaited: the program has not created enough, or what it has created
    /// depends on tasks that run.
    Supply = 1,
    /// No task is ready, and the rank waits for data or for other ranks.
    Communication,
    /// No task is ready, and the program waits for its own tasks to become fewer.
    Throttle,
    /// Tasks of the rank are ready at other workers.
    NotForThisWorker,
    /// All tasks of the rank have ended.
    End,
    /// A slow core of the rank, which the worker stands for, computes.
    SlowCore,
}

impl IdleCause {
    /// All causes, by increasing number.
    pub const ALL: [Self; 6] = [
        Self::Supply,
        Self::Communication,
        Self::Throttle,
        Self::NotForThisWorker,
        Self::End,
        Self::SlowCore,
    ];

    /// Returns the value in the trace, from 1: 0 means that the worker is not idle.
    pub const fn number(self) -> i64 {
        self as i64
    }

    /// Returns the label in the trace.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Supply => "supply",
            Self::Communication => "communication",
            Self::Throttle => "throttle",
            Self::NotForThisWorker => "not for this worker",
            Self::End => "end",
            Self::SlowCore => "slow core",
        }
    }
}
