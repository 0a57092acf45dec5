//! Traces made of others: a part of one, or several pieces of one run.
//!
//! Pieces are parts of other times, or the traces of its processes, with other clocks, labels in another
//! order, and messages of which each has a half.
//!
//! Both are written as they are read, in memory that does not grow with them, but for messages between
//! processes; beside them are copies of the labels and names. A trace that does not begin with its run says so in a comment, by which pieces
//! that were cut find their places again.

mod begin;
mod cut;
mod halves;
mod joined;
mod merge;
mod merged_labels;
mod new_trace;
mod piece_clock;
mod pieces;
mod prv_file;

pub use cut::cut;
pub use merge::merge;
