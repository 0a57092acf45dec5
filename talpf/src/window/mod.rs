//! Windows: where and when operations of peers may land (R5 to R7).
//!
//! A window belongs to one round of one lane. It is *declared* when the sync of the round is
//! spawned, *opened* when its expose task runs, which may be before that if the windows are few, and
//! brings the guard of the region, and *closed* when the sync ends, which drops the guard. What
//! arrives
//!
//! * before it is open is parked here, up to a number of operations a source, and lands when it
//!   opens; a source without credit keeps its operation and tries again;
//! * while it is open lands at once, unless it overlaps something that is still landing: then it
//!   is parked until that has landed, so overlapping puts have some order (R6);
//! * after it has closed, or outside every window of its round, is refused (R7).
//!
//! An operation *has landed* when the device has carried it out, which may be after it was posted.
//! A window keeps its guard until everything it admitted has landed; then nothing that a peer does
//! overlaps in time with a local guard.
//!
//! Windows of a round that are written to and regions that are exposed do not overlap, so a get of
//! what is put in the same round is outside. What else would read and write one location is found
//! when the round ends, if the run looks for it (`conflicts.rs`).
//!
//! The poster's thread calls [`WindowTable::land`] of the target, the target's tasks the rest. One
//! lock a rank; long copies are made outside it.

mod area;
mod areas;
mod conflicts;
mod in_flight;
mod landing;
mod round;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use self::area::{Area, Claim, Kind};
pub(crate) use self::areas::Areas;
pub(crate) use self::landing::{Freed, Landing, Outcome, Over, Parked, Post, Rest, Together};
pub(crate) use self::table::WindowTable;
