//! Files that get the records of a run while it lasts, so that a run that is killed leaves a trace.
//!
//! A stream shares each of its chunks with the writer ([`Spill`]), whose thread stores new records,
//! also those of chunks that are not full, every 200 ms, and sooner if many wait. The file is a head
//! and blocks (`block`): the description of the run, names of tasks, records of a worker (`records`).
//! Each has its length and checksum, so that damage costs the block that it is in. [`recover()`] makes a
//! trace of a file.

mod block;
mod fields;
mod file;
mod records;
mod recover;
mod writer;

pub(crate) use file::SpillFile;
pub use recover::{Recovered, recover};
pub(crate) use writer::{Share, Spill};
