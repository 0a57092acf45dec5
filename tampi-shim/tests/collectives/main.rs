//! Collectives of the ranks of one process, against a serial oracle. One behaviour a file; the
//! programs are functions over a communicator, so that they run on any transport.

mod common;
mod oracle;

mod barriers;
mod bound_to_tasks;
mod communicators;
mod failures;
mod folding;
mod groups;
mod in_flight;
mod moving;
#[path = "../support/requested_time.rs"]
mod requested_time;
