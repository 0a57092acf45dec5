//! Signals between two ends of a queue, a phaser or others like them: a count that only grows, and an
//! end after it.
//!
//! ```text
//! in one process    signaller ── stores its count ──► Signals ◄── reads ── the end that waits
//! between two       signaller ── Count(count) ──► Arrivals ── stores ──► Signals
//! ```
//!
//! *Counts are absolute*: a signal is the number of all that was ever signalled, not one more, so that
//! a late one changes nothing and a signaller may be any number ahead.
//!
//! **Threads.** A count is written by its signaller, if that is in this process and so knows the
//! [`Arrivals`], and otherwise by the table of notifications under its lock. `word.rs` has the protocol.

mod arrivals;
mod value;
mod way;
mod word;

pub(crate) use self::arrivals::{Arrivals, Listening, Receiving};
pub(crate) use self::value::{Count, MOST_ITEMS, Signal};
pub(crate) use self::way::Way;
pub(crate) use self::word::End;
