//! Loom models of the window table with a peer in another thread.

use super::*;
use loom::sync::Arc;
use loom::thread;

/// Lands `put` as a peer. Returns `true` if it was refused at once.
fn land(table: &WindowTable, quick: bool, put: Put) -> bool {
    let carried = Shared::clone(&put.0);
    let has_landed = move |_| carried.carried_out.load(Ordering::SeqCst);
    let (outcome, freed) = table.land(LANE, FIRST, claim(0, 0, 8), quick, put, &has_landed);
    drop(table.post_admitted(freed, &has_landed));
    match outcome {
        Outcome::Refused(_) => true,
        Outcome::Retry(_) => panic!("there is credit"),
        Outcome::Posted(_) | Outcome::Parked => false,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Declares {
    BeforeItOpens,
    AfterItOpens,
    /// As it opens, as the only window of its round.
    AsItOpens,
}

/// A put that comes at any time while the owner opens and ends the round.
fn arrives(quick: bool, declares: Declares) {
    loom::model(move || {
        let table = Arc::new(WindowTable::new(1, 1));
        let (put, fate) = put(&Shared::<Guard>::default());
        if declares == Declares::BeforeItOpens {
            drop(declare(&table, &[area(0, 8)]));
        }
        let peer = {
            let table = Arc::clone(&table);
            thread::spawn(move || land(&table, quick, put))
        };
        let is_only = declares == Declares::AsItOpens;
        let (window, guard) = ((0, area(0, 8)), fate.guard.give());
        let (freed, is_declared) =
            table.open((LANE, FIRST), [(window, guard)], is_only, (&|_| true, NO_TICKETS));
        drop(table.post_admitted(freed, &|_| true));
        assert_eq!(is_declared, is_only);
        if declares == Declares::AfterItOpens {
            drop(declare(&table, &[area(0, 8)]));
        }
        while end(&table, FIRST, &|_| true).is_none() {
            thread::yield_now();
        }
        assert!(fate.guard.dropped.load(Ordering::SeqCst));
        let refused_at_once = peer.join().unwrap();
        let (posts, refusals) = fate.counts();
        assert_eq!(posts + refusals + u32::from(refused_at_once), 1, "neither lost nor twice");
        assert!(table.parked().is_empty());
    });
}

#[test]
fn loom_a_short_put_lands_before_the_end_or_is_refused_once() {
    arrives(true, Declares::BeforeItOpens);
}

#[test]
fn loom_a_long_put_lands_before_the_end_or_is_refused_once() {
    arrives(false, Declares::BeforeItOpens);
}

#[test]
fn loom_a_put_that_may_come_before_its_window_is_declared() {
    arrives(true, Declares::AfterItOpens);
    arrives(false, Declares::AfterItOpens);
}

#[test]
fn loom_a_put_that_may_come_before_the_only_window_of_its_round_opens() {
    arrives(true, Declares::AsItOpens);
    arrives(false, Declares::AsItOpens);
}

/// The device carries the put out later, in a thread of its own; the guard stays until then.
#[test]
fn loom_the_guard_stays_until_what_was_admitted_has_landed() {
    for quick in [true, false] {
        loom::model(move || {
            let table = Arc::new(WindowTable::new(1, 1));
            let (put, fate) = put(&Shared::<Guard>::default());
            drop(declare(&table, &[area(0, 8)]));
            drop(open(&table, FIRST, (0, area(0, 8)), fate.guard.give(), &|_| true));
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
            while end(&table, FIRST, &landed).is_none() {
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
        drop(declare(&table, &[area(0, 8)]));
        drop(open(&table, FIRST, (0, area(0, 8)), guard.give(), &|_| true));
        let copying = Shared::new(AtomicBool::new(false));
        let peers = [0, 1].map(|source| {
            let (table, copying) = (Arc::clone(&table), Shared::clone(&copying));
            let (put, fate) = put(&guard);
            thread::spawn(move || {
                let put = Exclusive(put, copying);
                let claim = claim(source, 0, 8);
                let (outcome, freed) = table.land(LANE, FIRST, claim, false, put, &|_| true);
                assert!(matches!(outcome, Outcome::Posted(_) | Outcome::Parked));
                drop(table.post_admitted(freed, &|_| true));
                fate
            })
        });
        let fates = peers.map(|peer| peer.join().unwrap());
        drop(settle(&table, &|_| true));
        assert!(end(&table, FIRST, &|_| true).is_some());
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

    fn refuse(self: Box<Self>) {
        Box::new(self.0).refuse();
    }
}

/// Tests one credit for two puts of one source: a put without it is returned, one that was parked
/// returns its credit, and none is lost or counted twice.
#[test]
fn loom_credit_comes_back_with_what_was_parked() {
    loom::model(|| {
        let table = Arc::new(WindowTable::new(1, 1));
        let guard = Shared::<Guard>::default();
        let peer = {
            let (table, guard) = (Arc::clone(&table), Shared::clone(&guard));
            thread::spawn(move || {
                let (mut fates, mut later) = (Vec::new(), Vec::new());
                for index in [0, 4] {
                    let (put, fate) = put(&guard);
                    fates.push(fate);
                    match table
                        .land(LANE, FIRST, claim(0, index, index + 4), true, put, &|_| true)
                        .0
                    {
                        Outcome::Retry(put) => later.push((put, index)),
                        Outcome::Refused(_) => panic!("there will be a window"),
                        Outcome::Posted(_) | Outcome::Parked => {}
                    }
                }
                (fates, later)
            })
        };
        let freed = open(&table, FIRST, (0, area(0, 8)), guard.give(), &|_| true);
        let (fates, later) = peer.join().unwrap();
        assert!(later.len() <= 1, "one credit for two");
        if !later.is_empty() {
            assert_eq!(freed.sources(), [Rank(0)], "who may try again is named");
        }
        assert!(table.parked().is_empty(), "a credit is lost");
        for (put, index) in later {
            let again = table.land(LANE, FIRST, claim(0, index, index + 4), true, put, &|_| true);
            assert!(matches!(again.0, Outcome::Posted(_)));
        }
        drop(freed);
        drop(declare(&table, &[area(0, 8)]));
        assert!(end(&table, FIRST, &|_| true).is_some());
        assert!(fates.iter().all(|fate| fate.counts() == (1, 0)), "each lands once");
    });
}

/// The round of a ticket ends while its window opens: the source gets the ticket before it is recalled.
#[test]
fn loom_no_ticket_is_recalled_before_it_is_given() {
    loom::model(|| {
        let table = Arc::new(WindowTable::new(2, 1));
        let guards = [0, 1].map(|_| Shared::<Guard>::default());
        drop(open(&table, FIRST, (0, area(0, 8)), guards[0].give(), &|_| true));
        for _ in 0..2 {
            let request = Request(put(&guards[0]).0);
            drop(table.land(LANE, FIRST, claim(1, 0, 8), true, request, &|_| true));
        }
        assert!(end(&table, FIRST, &|_| true).is_some());
        let given = Arc::new(loom::sync::Mutex::new(None));
        let opener = {
            let (table, given, guard) = (Arc::clone(&table), Arc::clone(&given), guards[1].give());
            thread::spawn(move || {
                let send = |ticket: Ticket| {
                    *given.lock().unwrap() = Some(ticket.number);
                    true
                };
                let window = (0, area(0, 8));
                drop(table.open((LANE, Round(1)), [(window, guard)], true, (&|_| true, &send)).0);
            })
        };
        loop {
            let mut freed = Freed::default();
            let ended = table.end(LANE, Round(1), &|_| true, &mut freed);
            for (source, number) in freed.recalled() {
                assert_eq!(*given.lock().unwrap(), Some(*number));
                table.end_ticket(*number, *source, TicketEnd::Unused).unwrap();
            }
            if ended.is_ok() {
                break;
            }
        }
        opener.join().unwrap();
    });
}
