//! Accesses: the use of regions by tasks, and the dependencies between tasks.
//!
//! This room knows records, and arrays as far as their tiles, locks and [`Domain`] go. It knows no
//! group, no scheduler and no replay: it reports a task whose last edge is followed, and one that has
//! its tile locks, to a [`ReadySink`], and gives units of completion up there. What calls it: spawns
//! ([`register`]), and guards and lendings as they drop ([`close()`], [`lend`], [`pass_on()`]).
//!
//! An *access* is one declared use of one region by one task. It is *open* from the spawn until its
//! guard drops (rule R2). Spawning finds, in the [`BottomMap`] of every tile that the region
//! touches, the open accesses that conflict with the new one, and links an *edge* from each of them
//! to the new task. Closing an access follows its edges; a task whose last edge is followed is
//! ready. Registration happens under the lock of the arrays' group, so spawn order decides (R3);
//! closing takes no lock.
//!
//! Concurrent accesses do not conflict with each other, nor do commutative ones; but the bodies of
//! the latter hold tile locks (`tile_lock.rs`). Accesses of one reduction do not conflict either;
//! tasks join and leave them (`reductions.rs`).
//!
//! # Lending
//!
//! A task may *lend* an access to its children. Their accesses have bottom maps of their own, a
//! [`Lending`](lending::Lending), so that the children are ordered where their parent is. When the parent gives up a
//! lent access while accesses of children inside it are open, the access is *passed on*: it stays
//! in the maps, and a task that meets it there waits for the open accesses of the children instead;
//! tasks that already wait for it are linked to those (`pass_on.rs`). It closes when its task is
//! complete.
//!
//! A *weak* access is lent from the start and its task does not wait for it. Its lending begins
//! with the accesses that are open when it is registered, so that its children and its successors
//! find those; its task is not complete before they close.
//!
//! All of this happens under the lock of the arrays' group.

mod arrays;
mod bottom_map;
mod clauses;
mod close;
mod declared;
mod domain;
mod lending;
mod locking;
mod open_access;
mod pass_on;
mod ready_sink;
mod reductions;
mod registration;
mod rtree;
mod spatial_list;
mod tile_lock;

pub(crate) use self::arrays::Arrays;
pub(crate) use self::bottom_map::BottomMap;
pub(crate) use self::clauses::{Clauses, Joins};
pub(crate) use self::close::close;
pub(crate) use self::declared::Declared;
pub(crate) use self::domain::Domain;
pub(crate) use self::locking::acquire_tile_locks;
pub(crate) use self::open_access::OpenAccess;
pub(crate) use self::pass_on::{ends_lending, forget_lending, lend, pass_on};
pub(crate) use self::ready_sink::ReadySink;
pub(crate) use self::reductions::OpenReduction;
pub(crate) use self::registration::{Registered, register};
pub(crate) use self::rtree::Placed;
pub(crate) use self::spatial_list::{Item, SpatialList};
pub(crate) use self::tile_lock::TileLock;
