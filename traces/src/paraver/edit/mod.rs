//! Traces made of others: a part of one, or several pieces of one run.
//!
//! Both are written as they are read, in memory that does not grow with them, beside copies of the
//! labels and names. A trace that does not begin with its run says so in a comment, by which pieces
//! that were cut find their places again.

mod begin;
mod cut;
mod merge;
mod new_trace;
mod pieces;
mod prv_file;

pub use cut::cut;
pub use merge::merge;
