//! Windows, which say where and when operations of peers may land (R5 to R7).
//!
//! A window belongs to one round of one lane. It is *declared* when the sync of the round is
//! spawned, *opened* when its expose task runs, which may be before that if the windows are few,
//! and brings the guard of the region, and *closed* when the sync ends, which drops the guard. An
//! operation that arrives
//!
//! * before the window is open is parked here, up to a number of operations a source, and lands
//!   when the window opens; a source without credit keeps its operation and retries;
//! * while the window is open lands at once, unless it overlaps an operation that is still landing:
//!   then it is parked until that has landed, so overlapping puts have some order (R6);
//! * after the window has closed, or outside every window of its round, is refused (R7).
//!
//! A window that opens also gives tickets to ranks of other processes, for puts that repeat earlier ones
//! (`tickets.rs`).
//!
//! An operation *has landed* when the device has carried it out, which may be after it was posted.
//! A window keeps its guard until every operation it admitted has landed; so no access of a peer
//! overlaps in time with a local guard.
//!
//! Windows of a round that are written to and regions that are exposed do not overlap, so a get of
//! elements that are put in the same round is outside every window. Other operations that read and
//! write one location are found when the round ends, if the run checks for them (`conflicts.rs`).
//!
//! The poster's thread calls [`WindowTable::land`] of the target; the target's tasks call the other
//! functions. Each rank has one lock; long copies are made outside it. Parked operations that are
//! admitted are posted under it if they are quick; others leave the table as deferred actions
//! ([`Freed`]) and are posted under no lock, by [`WindowTable::post_admitted`].

mod area;
mod areas;
mod checks;
mod conflicts;
mod idle_windows;
mod in_flight;
mod landing;
mod opening;
mod posting;
mod round;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod ticket_ends;
mod tickets;

pub(crate) use self::area::{Area, Claim, Kind};
pub(crate) use self::areas::Areas;
pub(crate) use self::landing::{
    EndedRound, Freed, HasLanded, Landing, Outcome, Parked, Post, Rest, Together, TravelTogether,
    Unended,
};
pub(crate) use self::table::WindowTable;
pub use self::tickets::TicketCounts;
pub(crate) use self::tickets::{SendTicket, Ticket, TicketEnd, no_ticket};
