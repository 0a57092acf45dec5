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
//!
//! # Lending
//!
//! A task may *lend* an access to its children. Theirs have bottom maps of their own, a [`Lending`],
//! so whatever the children do is ordered where their parent stands. When the parent lets go of
//! what it has lent while children have some of it open, the access is *passed on*: it stays in the
//! maps, and whoever meets it there waits for what the children have open instead; whoever waits
//! for it already is linked anew (`pass_on.rs`). It closes when its task is complete.
//!
//! A *weak* access is lent from the start and its task does not wait for it. Its lending begins
//! with what is open when it is registered, so that its children and its successors find that; its
//! task is not complete before.
//!
//! All of this happens under the lock of the arrays' group.

mod bottom_map;
mod domain;
mod head;
mod lending;
mod open;
mod pass_on;
mod reductions;
mod registration;
mod rtree;
mod slot;
mod spatial_list;
mod turns;

pub(crate) use self::bottom_map::BottomMap;
pub(crate) use self::domain::Domain;
pub(crate) use self::head::AccessHead;
pub(crate) use self::open::OpenAccess;
pub(crate) use self::pass_on::{PassedOn, lend, pass_on, release_unheld};
pub(crate) use self::reductions::{Joins, OpenReduction};
pub(crate) use self::registration::{Registered, register};
pub(crate) use self::rtree::Placed;
pub(crate) use self::slot::{AccessId, AccessSlot, Declared, Edge, EdgeId, release};
pub(crate) use self::spatial_list::{Item, SpatialList};
pub(crate) use self::turns::{Turn, take_turns};
