//! The window table, in one thread and, under loom, against a peer in another.
//! Somewhat over 400 lines: one state machine, its behaviours and its models on one page.

use std::any::Any;
use std::sync::Arc as Shared;

use talpf_runtime::Rect;

use super::*;
use crate::numbers::{Lane, Rank, Round};

#[cfg(talpf_loom)]
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
#[cfg(not(talpf_loom))]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const LANE: Lane = Lane(0);
const FIRST: Round = Round(0);

/// What became of one operation, and whether the guard of its window was there.
#[derive(Default)]
struct Fate {
    posts: AtomicU32,
    refusals: AtomicU32,
    #[cfg(talpf_loom)]
    #[cfg_attr(not(talpf_loom), allow(dead_code, reason = "only the models ask"))]
    carried_out: AtomicBool,
    guard: Shared<Guard>,
}

/// The right to a region, as the table sees it.
#[derive(Default)]
struct Guard {
    given: AtomicBool,
    gone: AtomicBool,
}

struct Held(Shared<Guard>);

impl Drop for Held {
    fn drop(&mut self) {
        assert!(!self.0.gone.swap(true, Ordering::SeqCst), "dropped once");
    }
}

impl Fate {
    fn counts(&self) -> (u32, u32) {
        (self.posts.load(Ordering::SeqCst), self.refusals.load(Ordering::SeqCst))
    }
}

impl Guard {
    fn give(self: &Shared<Self>) -> Box<dyn Any + Send> {
        self.given.store(true, Ordering::SeqCst);
        Box::new(Held(Shared::clone(self)))
    }

    fn check(&self) {
        assert!(self.given.load(Ordering::SeqCst), "landed before the window was open");
        assert!(!self.gone.load(Ordering::SeqCst), "landed after the round had ended");
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
    Claim { source: Rank(source), slot: 0, index, end, kind: Kind::Write }
}

/// Elements `col..col_end` of slot 0.
fn area(col: u32, col_end: u32) -> Area {
    let rect = Rect { row: 0, row_end: 1, col, col_end };
    Area { slot: 0, rect, cols: 100, kind: Kind::Write }
}

#[cfg(not(talpf_loom))]
mod in_one_thread {
    use super::*;

    const LANDED: HasLanded<'static> = &|_| true;
    const FLYING: HasLanded<'static> = &|_| false;

    type HasLanded<'a> = &'a dyn Fn(Rank) -> bool;

    fn land(table: &WindowTable, round: u64, claim: Claim, put: Put) -> Outcome<Put> {
        table.land(LANE, Round(round), claim, true, put, LANDED).0
    }

    #[test]
    fn an_operation_lands_in_the_window_that_covers_it_once_that_is_open() {
        let (table, guard) = (WindowTable::new(2, 8), Shared::<Guard>::default());
        let puts = [(0, 10), (10, 20), (5, 6)].map(|(index, end)| {
            let (put, fate) = put(&guard);
            assert!(matches!(land(&table, 0, claim(1, index, end), put), Outcome::Parked));
            fate
        });
        assert_eq!(table.declare(LANE, FIRST, area(0, 10)), 0);
        assert_eq!(table.declare(LANE, FIRST, area(10, 20)), 1);
        assert!(table.complete(LANE, FIRST).sources.is_empty());
        assert_eq!(table.parked(), [(Rank(1), 3)]);
        let freed = table.open(LANE, FIRST, 0, guard.give(), LANDED);
        assert_eq!(freed.sources, [Rank(1)]);
        assert_eq!(puts.each_ref().map(|fate| fate.counts()), [(1, 0), (0, 0), (1, 0)]);
        drop(table.open(LANE, FIRST, 1, Box::new(()), LANDED));
        assert_eq!(puts[1].counts(), (1, 0));
        assert!(table.parked().is_empty());
        assert!(table.end(LANE, FIRST, LANDED).is_some());
        assert!(guard.gone.load(Ordering::SeqCst));
    }

    #[test]
    fn what_no_window_covers_is_refused_when_all_are_declared_and_after_that_handed_back() {
        let (table, guard) = (WindowTable::new(1, 8), Shared::<Guard>::default());
        let (early, fate) = put(&guard);
        assert!(matches!(land(&table, 0, claim(0, 9, 11), early), Outcome::Parked));
        table.declare(LANE, FIRST, area(0, 10));
        table.declare(LANE, FIRST, area(10, 20));
        assert_eq!(table.complete(LANE, FIRST).sources, [Rank(0)]);
        assert_eq!(fate.counts(), (0, 1));
        let (late, fate) = put(&guard);
        assert!(matches!(land(&table, 0, claim(0, 19, 21), late), Outcome::Refused(_)));
        assert_eq!(fate.counts(), (0, 0));
    }

    #[test]
    fn a_round_that_has_ended_refuses_and_the_next_parks() {
        let (table, guard) = (WindowTable::new(1, 8), Shared::<Guard>::default());
        table.declare(LANE, FIRST, area(0, 10));
        drop(table.complete(LANE, FIRST));
        let (waiting, fate) = put(&guard);
        assert!(matches!(land(&table, 0, claim(0, 0, 1), waiting), Outcome::Parked));
        let freed = table.end(LANE, FIRST, LANDED).unwrap();
        assert_eq!((freed.sources, fate.counts()), (vec![Rank(0)], (0, 1)));
        assert!(matches!(land(&table, 0, claim(0, 0, 1), put(&guard).0), Outcome::Refused(_)));
        assert!(matches!(land(&table, 1, claim(0, 0, 1), put(&guard).0), Outcome::Parked));
        // The window opens when nobody needs it any more.
        let late = guard.give();
        drop(table.open(LANE, FIRST, 0, late, LANDED));
        assert!(guard.gone.load(Ordering::SeqCst));
    }

    #[test]
    fn credits_are_exact_and_come_back() {
        let (table, guard) = (WindowTable::new(2, 2), Shared::<Guard>::default());
        let attempt = |source| land(&table, 0, claim(source, 0, 1), put(&guard).0);
        for source in [0, 1] {
            assert!(matches!(attempt(source), Outcome::Parked));
            assert!(matches!(attempt(source), Outcome::Parked));
            assert!(matches!(attempt(source), Outcome::Later(_)));
        }
        table.declare(LANE, FIRST, area(0, 1));
        drop(table.complete(LANE, FIRST));
        assert!(matches!(attempt(0), Outcome::Later(_)));
        let mut freed = table.open(LANE, FIRST, 0, guard.give(), LANDED).sources;
        freed.sort_unstable();
        assert_eq!(freed, [Rank(0), Rank(1)]);
        assert!(matches!(attempt(0), Outcome::Posted(_)));
    }

    #[test]
    fn what_overlaps_something_that_is_landing_waits_for_it_and_nothing_else_does() {
        let (table, guard) = (WindowTable::new(2, 8), Shared::<Guard>::default());
        table.declare(LANE, FIRST, area(0, 30));
        drop(table.complete(LANE, FIRST));
        drop(table.open(LANE, FIRST, 0, guard.give(), FLYING));
        let flying = |claim| table.land(LANE, FIRST, claim, true, put(&guard).0, FLYING).0;
        assert!(matches!(flying(claim(0, 0, 10)), Outcome::Posted(_)));
        assert!(matches!(flying(claim(1, 10, 20)), Outcome::Posted(_)));
        assert!(matches!(flying(claim(1, 9, 10)), Outcome::Parked));
        assert!(table.has_delayed());
        assert!(matches!(flying(claim(1, 20, 30)), Outcome::Posted(_)));
        assert!(table.settle(FLYING).sources.is_empty());
        assert!(table.end(LANE, FIRST, FLYING).is_none(), "not all has landed");
        assert_eq!(table.settle(LANDED).sources, [Rank(1)]);
        assert!(!table.has_delayed());
        assert!(!guard.gone.load(Ordering::SeqCst));
        assert!(table.end(LANE, FIRST, LANDED).is_some());
        assert!(guard.gone.load(Ordering::SeqCst));
    }

    #[test]
    fn of_overlapping_ones_that_came_early_one_lands_and_the_others_are_looked_after() {
        let (table, guard) = (WindowTable::new(2, 8), Shared::<Guard>::default());
        let fates = [1, 0].map(|source| {
            let (early, fate) = put(&guard);
            assert!(matches!(land(&table, 0, claim(source, 0, 1), early), Outcome::Parked));
            fate
        });
        table.declare(LANE, FIRST, area(0, 1));
        drop(table.complete(LANE, FIRST));
        assert_eq!(table.open(LANE, FIRST, 0, guard.give(), FLYING).sources, [Rank(1)]);
        assert!(table.has_delayed());
        assert_eq!(table.settle(LANDED).sources, [Rank(0)]);
        assert_eq!(fates.each_ref().map(|fate| fate.counts()), [(1, 0), (1, 0)]);
        assert!(!table.has_delayed());
    }

    /// Two puts of one source: the device keeps their order only if both are posted.
    #[test]
    fn a_round_that_is_ending_takes_nothing_more() {
        let (table, guard) = (WindowTable::new(1, 8), Shared::<Guard>::default());
        table.declare(LANE, FIRST, area(0, 10));
        drop(table.complete(LANE, FIRST));
        drop(table.open(LANE, FIRST, 0, guard.give(), FLYING));
        let posted = table.land(LANE, FIRST, claim(0, 0, 1), true, put(&guard).0, FLYING);
        assert!(matches!(posted.0, Outcome::Posted(_)));
        assert!(table.end(LANE, FIRST, FLYING).is_none());
        assert!(matches!(land(&table, 0, claim(0, 5, 6), put(&guard).0), Outcome::Refused(_)));
        assert!(table.end(LANE, FIRST, LANDED).is_some());
    }

    /// What was parked for an overlap lands before the round ends, or is refused: never lost.
    #[test]
    fn clearing_drops_guards_and_operations() {
        let (table, guard) = (WindowTable::new(1, 8), Shared::<Guard>::default());
        table.declare(LANE, FIRST, area(0, 10));
        drop(table.open(LANE, FIRST, 0, guard.give(), LANDED));
        let (parked, fate) = put(&guard);
        assert!(matches!(land(&table, 3, claim(0, 0, 1), parked), Outcome::Parked));
        assert_eq!(Shared::strong_count(&fate), 2);
        table.clear();
        assert!(guard.gone.load(Ordering::SeqCst));
        assert_eq!((Shared::strong_count(&fate), fate.counts()), (1, (0, 0)));
    }
}

#[cfg(talpf_loom)]
mod loom_models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// A peer's side of the table: lands `put`, and says whether it was refused at once.
    fn land(table: &WindowTable, quick: bool, put: Put) -> bool {
        let carried = Shared::clone(&put.0);
        let has_landed = move |_| carried.carried_out.load(Ordering::SeqCst);
        match table.land(LANE, FIRST, claim(0, 0, 8), quick, put, &has_landed).0 {
            Outcome::Refused(_) => true,
            Outcome::Later(_) => panic!("there is credit"),
            Outcome::Posted(_) | Outcome::Parked => false,
        }
    }

    /// A put that comes at any time while the owner opens and ends the round.
    fn arrives(quick: bool, declared: bool) {
        loom::model(move || {
            let table = Arc::new(WindowTable::new(1, 1));
            let (put, fate) = put(&Shared::<Guard>::default());
            if declared {
                table.declare(LANE, FIRST, area(0, 8));
                drop(table.complete(LANE, FIRST));
            }
            let peer = {
                let table = Arc::clone(&table);
                thread::spawn(move || land(&table, quick, put))
            };
            if !declared {
                table.declare(LANE, FIRST, area(0, 8));
                drop(table.complete(LANE, FIRST));
            }
            drop(table.open(LANE, FIRST, 0, fate.guard.give(), &|_| true));
            while table.end(LANE, FIRST, &|_| true).is_none() {
                thread::yield_now();
            }
            assert!(fate.guard.gone.load(Ordering::SeqCst));
            let refused_at_once = peer.join().unwrap();
            let (posts, refusals) = fate.counts();
            assert_eq!(posts + refusals + u32::from(refused_at_once), 1, "neither lost nor twice");
            assert!(table.parked().is_empty());
        });
    }

    #[test]
    fn loom_a_short_put_lands_before_the_end_or_is_refused_once() {
        arrives(true, true);
    }

    #[test]
    fn loom_a_long_put_lands_before_the_end_or_is_refused_once() {
        arrives(false, true);
    }

    #[test]
    fn loom_a_put_that_may_come_before_its_window_is_declared() {
        arrives(true, false);
        arrives(false, false);
    }

    /// The device carries the put out later, in a thread of its own; the guard stays until then.
    #[test]
    fn loom_the_guard_stays_until_what_was_admitted_has_landed() {
        for quick in [true, false] {
            loom::model(move || {
                let table = Arc::new(WindowTable::new(1, 1));
                let (put, fate) = put(&Shared::<Guard>::default());
                table.declare(LANE, FIRST, area(0, 8));
                drop(table.complete(LANE, FIRST));
                drop(table.open(LANE, FIRST, 0, fate.guard.give(), &|_| true));
                let peer = {
                    let (table, fate) = (Arc::clone(&table), Shared::clone(&fate));
                    thread::spawn(move || {
                        let refused = land(&table, quick, put);
                        if !refused {
                            // The copy.
                            fate.guard.check();
                            fate.carried_out.store(true, Ordering::SeqCst);
                        }
                        refused
                    })
                };
                let landed = |_| {
                    let posted = fate.posts.load(Ordering::SeqCst) > 0;
                    !posted || fate.carried_out.load(Ordering::SeqCst)
                };
                while table.end(LANE, FIRST, &landed).is_none() {
                    thread::yield_now();
                }
                let refused = peer.join().unwrap();
                assert_eq!(fate.counts(), (u32::from(!refused), 0));
            });
        }
    }

    /// Two peers put to one place: both land, one after the other.
    #[test]
    fn loom_two_overlapping_long_puts_do_not_land_at_one_time() {
        loom::model(|| {
            let table = Arc::new(WindowTable::new(2, 1));
            let guard = Shared::<Guard>::default();
            table.declare(LANE, FIRST, area(0, 8));
            drop(table.complete(LANE, FIRST));
            drop(table.open(LANE, FIRST, 0, guard.give(), &|_| true));
            let copying = Shared::new(AtomicBool::new(false));
            let peers = [0, 1].map(|source| {
                let (table, copying) = (Arc::clone(&table), Shared::clone(&copying));
                let (put, fate) = put(&guard);
                thread::spawn(move || {
                    let put = Exclusive(put, copying);
                    let claim = claim(source, 0, 8);
                    let (outcome, freed) = table.land(LANE, FIRST, claim, false, put, &|_| true);
                    assert!(matches!(outcome, Outcome::Posted(_) | Outcome::Parked));
                    drop(freed);
                    fate
                })
            });
            let fates = peers.map(|peer| peer.join().unwrap());
            drop(table.settle(&|_| true));
            assert!(table.end(LANE, FIRST, &|_| true).is_some());
            assert_eq!(fates.map(|fate| fate.counts()), [(1, 0), (1, 0)]);
        });
    }

    /// A put that takes a while, during which no other may.
    struct Exclusive(Put, Shared<AtomicBool>);

    impl Exclusive {
        fn copy(&mut self) -> Post {
            assert!(!self.1.swap(true, Ordering::SeqCst), "two copies at one time");
            let post = self.0.post_once();
            self.1.store(false, Ordering::SeqCst);
            post
        }
    }

    impl Landing for Exclusive {
        fn post(&mut self) -> Post {
            self.copy()
        }

        fn park(self) -> Box<dyn Parked> {
            Box::new(self)
        }
    }

    impl Parked for Exclusive {
        fn post(&mut self) -> Post {
            self.copy()
        }

        fn refuse(self: Box<Self>, claim: &Claim, lane: Lane, round: Round) {
            Box::new(self.0).refuse(claim, lane, round);
        }
    }
}
