//! Records of a trace as numbers, and those who receive them.

use super::report::Report;
use crate::MessageKind;
use crate::error::Result;

/// Record of a trace. Times are nanoseconds, rows count all threads of the trace from 0 in the order of its
/// header, and cpus count from 1, with 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A row has been in a state.
    State {
        /// Row of the thread.
        row: usize,
        /// Cpu of the thread.
        cpu: u32,
        /// Begin of the state.
        begin_ns: u64,
        /// End of the state.
        end_ns: u64,
        /// Number of the state.
        state: u32,
    },
    /// Values of a row change.
    Event {
        /// Row of the thread.
        row: usize,
        /// Cpu of the thread.
        cpu: u32,
        /// Time of the change.
        time_ns: u64,
        /// Event types and their new values.
        values: &'a [(u32, i64)],
    },
    /// Data goes from one row to another.
    Communication(Communication),
}

/// Data that goes from one row to another, or a [control](Self::control) message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Communication {
    /// Row that sends.
    pub sender: usize,
    /// Cpu of that row.
    pub sender_cpu: u32,
    /// Row that receives.
    pub receiver: usize,
    /// Cpu of that row.
    pub receiver_cpu: u32,
    /// Call that caused the send.
    pub logical_send_ns: u64,
    /// Moment at which the data leaves.
    pub send_ns: u64,
    /// Moment at which the data has arrived.
    pub receive_ns: u64,
    /// Moment at which the receiver knows of it.
    pub logical_receive_ns: u64,
    /// Size of the data.
    pub bytes: u64,
    /// Tag of the message.
    pub tag: i64,
}

impl Communication {
    /// Returns the kind of a control message of our traces; `None` for a message with data.
    pub fn control(&self) -> Option<MessageKind> {
        MessageKind::of_tag(self.tag)
    }
}

impl Record<'_> {
    /// Returns the time by which records are sorted.
    pub(crate) fn first_ns(&self) -> u64 {
        match *self {
            Self::State { begin_ns, .. } => begin_ns,
            Self::Event { time_ns, .. } => time_ns,
            Self::Communication(message) => message.logical_send_ns,
        }
    }

    /// Returns the last time.
    pub(crate) fn last_ns(&self) -> u64 {
        match *self {
            Self::State { end_ns, .. } => end_ns,
            Self::Event { time_ns, .. } => time_ns,
            Self::Communication(message) => message.receive_ns.max(message.logical_receive_ns),
        }
    }

    /// Replaces each time.
    pub(crate) fn map_times(&mut self, map: impl Fn(u64) -> u64) {
        let times: &mut [&mut u64] = match self {
            Self::State { begin_ns, end_ns, .. } => &mut [begin_ns, end_ns],
            Self::Event { time_ns, .. } => &mut [time_ns],
            Self::Communication(Communication {
                logical_send_ns,
                send_ns,
                receive_ns,
                logical_receive_ns,
                ..
            }) => &mut [logical_send_ns, send_ns, receive_ns, logical_receive_ns],
        };
        for time in times {
            **time = map(**time);
        }
    }
}

/// Receiver of the records that have no error. It is asked after each line, and ends the reading by
/// an error.
pub(in crate::paraver) trait Visitor {
    fn record(&mut self, record: Record<'_>);

    /// Receives the text of a comment.
    fn comment(&mut self, _text: &[u8]) {}

    /// Receives a line that declares a communicator, or stands between such lines.
    fn communicator(&mut self, _line: &[u8]) {}

    fn line_ends(&mut self, _report: &Report) -> Result<()> {
        Ok(())
    }
}
