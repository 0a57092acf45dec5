//! Records of a trace as numbers, and those who receive them.

use super::report::Report;
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
    Communication {
        /// Row that sends.
        sender: usize,
        /// Row that receives.
        receiver: usize,
        /// Call that caused the send.
        logical_send_ns: u64,
        /// Moment at which the data leaves.
        send_ns: u64,
        /// Moment at which the data has arrived.
        receive_ns: u64,
        /// Moment at which the receiver knows of it.
        logical_receive_ns: u64,
        /// Size of the data.
        bytes: u64,
        /// Tag of the message.
        tag: i64,
    },
}

/// Receiver of the records that have no error. It is asked after each line, and ends the reading by
/// an error.
pub(super) trait Visitor {
    fn record(&mut self, record: Record<'_>);

    /// Receives the text of a comment.
    fn comment(&mut self, text: &[u8]);

    fn line_ends(&mut self, report: &Report) -> Result<()>;
}
