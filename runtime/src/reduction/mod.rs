//! Reductions: tasks that fold values into one region, each working on a private copy.
//!
//! The accesses of one reduction - same region, same operator, no conflicting access declared in
//! between - are not ordered among themselves (`access/reductions.rs`); all others wait for all of
//! them. A task joins its reduction when it is registered, by the [`Ticket`] that its clause has
//! made, and leaves it when its guard drops, before its access closes; [`Copies`] has the copies in
//! between.

mod clause;
mod copies;
mod guard;
pub mod operator;
mod ticket;

pub use self::clause::{ManyReduced, Reduced};
pub use self::guard::Reduction;

use self::copies::{Copies, PrivateCopy, Target};
use self::ticket::{Contribution, Member, Ticket};
