//! Accesses: who uses which region, and who waits for whom.
//!
//! An *access* is one declared use of one region by one task. It is *open* from the spawn until
//! its guard drops (rule R2). Spawning looks up, in the [`BottomMap`] of every tile the region
//! touches, which open accesses conflict with the new one, and links an *edge* from each of them
//! to the new task. Closing an access follows its edges; a task whose last edge is followed is
//! ready. Registration happens under the lock of the arrays' group, so spawn order decides (R3);
//! closing takes no lock.
//!
//! Concurrent accesses do not conflict with each other, nor do commutative ones; but the bodies of
//! the latter take turns (`turns.rs`). Accesses of one reduction do not conflict either; tasks join
//! and leave them (`reductions.rs`).

mod bottom_map;
mod domain;
mod head;
mod reductions;
mod registration;
mod slot;
mod turns;

pub(crate) use self::bottom_map::BottomMap;
pub(crate) use self::domain::Domain;
pub(crate) use self::head::AccessHead;
pub(crate) use self::reductions::{Joins, OpenReduction};
pub(crate) use self::registration::register;
pub(crate) use self::slot::{AccessId, AccessSlot, Declared, Edge, EdgeId, release};
pub(crate) use self::turns::{Turn, take_turns};
