//! Tests of the window table, in one thread and, under loom, with a peer in another.

#[cfg(not(talpf_loom))]
mod in_one_thread;
#[cfg(talpf_loom)]
mod loom_models;
#[cfg(not(talpf_loom))]
mod outside_the_lock;
#[cfg(not(talpf_loom))]
mod posting;
#[cfg(not(talpf_loom))]
mod tickets;

use std::sync::Arc as Shared;

use talpf_runtime::Rect;

use super::landing::HasLanded;
use super::*;
use crate::held_guard::{HeldGuard, OtherGuard};
use crate::numbers::{LaneNumber, Rank, Round};

#[cfg(talpf_loom)]
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
#[cfg(not(talpf_loom))]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const LANE: LaneNumber = LaneNumber(0);
const FIRST: Round = Round(0);
/// Sends no ticket.
const NO_TICKETS: SendTicket<'static> = &|_| false;

/// The outcome of one operation, and of the guard of its window.
#[derive(Default)]
struct Fate {
    posts: AtomicU32,
    refusals: AtomicU32,
    #[cfg(talpf_loom)]
    #[cfg_attr(not(talpf_loom), allow(dead_code, reason = "only the models ask"))]
    carried_out: AtomicBool,
    guard: Shared<Guard>,
}

/// A guard of a region.
#[derive(Default)]
struct Guard {
    given: AtomicBool,
    dropped: AtomicBool,
    poisoned: AtomicBool,
}

struct Given(Shared<Guard>);

impl OtherGuard for Given {
    fn poison(self: Box<Self>, reason: &str) {
        assert_eq!(reason, "a failure");
        self.0.poisoned.store(true, Ordering::SeqCst);
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        assert!(!self.0.dropped.swap(true, Ordering::SeqCst), "dropped once");
    }
}

impl Fate {
    fn counts(&self) -> (u32, u32) {
        (self.posts.load(Ordering::SeqCst), self.refusals.load(Ordering::SeqCst))
    }
}

impl Guard {
    fn give(self: &Shared<Self>) -> HeldGuard {
        self.given.store(true, Ordering::SeqCst);
        HeldGuard::Other(Box::new(Given(Shared::clone(self))))
    }

    fn check(&self) {
        assert!(self.given.load(Ordering::SeqCst), "landed before the window was open");
        assert!(!self.dropped.load(Ordering::SeqCst), "landed after the round had ended");
    }
}

/// An operation.
#[derive(Debug)]
struct Put(Shared<Fate>);

impl std::fmt::Debug for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fate")
    }
}

impl Put {
    fn post_once(&self) -> Post {
        self.0.guard.check();
        self.0.posts.fetch_add(1, Ordering::SeqCst);
        Post::All
    }
}

impl Landing for Put {
    fn post(&mut self) -> Post {
        self.post_once()
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self)
    }
}

impl Parked for Put {
    fn post(&mut self) -> Post {
        self.post_once()
    }

    fn refuse(self: Box<Self>) {
        self.0.refusals.fetch_add(1, Ordering::SeqCst);
    }
}

fn put(guard: &Shared<Guard>) -> (Put, Shared<Fate>) {
    let fate = Fate { guard: Shared::clone(guard), ..Fate::default() };
    let fate = Shared::new(fate);
    (Put(Shared::clone(&fate)), fate)
}

/// Elements `index..end` of slot 0, for `source`.
fn claim(source: u32, index: u64, end: u64) -> Claim {
    let (source, kind) = (Rank(source), Kind::Write);
    Claim { source, slot: 0, index, end, rows: 1, stride: 0, kind, raw: false }
}

/// Elements `col..col_end` of slot 0.
fn area(col: u32, col_end: u32) -> Area {
    let rect = Rect { row: 0, row_end: 1, col, col_end };
    Area { slot: 0, rect, cols: 100, kind: Kind::Write }
}

fn areas_of(areas: &[Area]) -> Areas {
    let mut sorted = Areas::default();
    areas.iter().for_each(|area| sorted.push(*area));
    assert_eq!(sorted.sort(), Ok(()));
    sorted
}

/// Opens a window that may be one of several.
fn open(
    table: &WindowTable,
    round: Round,
    window: (usize, Area),
    guard: HeldGuard,
    has_landed: HasLanded<'_>,
) -> Freed {
    let (freed, _) = table.open((LANE, round), [(window, guard)], false, (has_landed, NO_TICKETS));
    table.post_admitted(freed, has_landed)
}

/// Posts the parked operations that may land.
fn settle(table: &WindowTable, has_landed: HasLanded<'_>) -> Freed {
    table.post_admitted(table.settle(has_landed), has_landed)
}

/// Declares the windows of the first round.
fn declare(table: &WindowTable, areas: &[Area]) -> Freed {
    table.declare(LANE, FIRST, &mut areas_of(areas), &|_| true)
}

/// Ends a round, unless something has to land or tickets are out.
fn end(table: &WindowTable, round: Round, has_landed: HasLanded<'_>) -> Option<EndedRound> {
    table.end(LANE, round, has_landed, &mut Freed::default()).ok()
}

/// The request of a remote rank.
struct Request(Put);

impl Landing for Request {
    fn is_request(&self) -> bool {
        true
    }

    fn post(&mut self) -> Post {
        Landing::post(&mut self.0)
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self.0)
    }
}
