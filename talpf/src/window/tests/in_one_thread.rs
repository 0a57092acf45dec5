//! Tests of the window table in one thread.

use super::*;

const LANDED: HasLanded<'static> = &|_| true;
const FLYING: HasLanded<'static> = &|_| false;

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
    assert!(declare(&table, &[area(0, 10), area(10, 20)]).sources().is_empty());
    assert_eq!(table.parked(), [(Rank(1), 3)]);
    let freed = open(&table, FIRST, (0, area(0, 10)), guard.give(), LANDED);
    assert_eq!(freed.sources(), [Rank(1)]);
    assert_eq!(puts.each_ref().map(|fate| fate.counts()), [(1, 0), (0, 0), (1, 0)]);
    let other = Shared::<Guard>::default().give();
    drop(open(&table, FIRST, (1, area(10, 20)), other, LANDED));
    assert_eq!(puts[1].counts(), (1, 0));
    assert!(table.parked().is_empty());
    assert!(end(&table, FIRST, LANDED).is_some());
    assert!(guard.dropped.load(Ordering::SeqCst) && !guard.poisoned.load(Ordering::SeqCst));
}

#[test]
fn a_window_that_opens_before_all_are_declared_takes_what_came_early() {
    let (table, guard) = (WindowTable::new(1, 8), Shared::<Guard>::default());
    let puts = [(15, 16), (5, 6), (25, 26)].map(|(index, end)| {
        let (put, fate) = put(&guard);
        assert!(matches!(land(&table, 0, claim(0, index, end), put), Outcome::Parked));
        fate
    });
    let counts = || puts.each_ref().map(|fate| fate.counts());
    drop(open(&table, FIRST, (1, area(10, 20)), guard.give(), LANDED));
    assert_eq!(counts(), [(1, 0), (0, 0), (0, 0)]);
    drop(declare(&table, &[area(0, 10), area(10, 20)]));
    assert_eq!(counts(), [(1, 0), (0, 0), (0, 1)]);
    let other = Shared::<Guard>::default().give();
    drop(open(&table, FIRST, (0, area(0, 10)), other, LANDED));
    assert_eq!(counts(), [(1, 0), (1, 0), (0, 1)]);
}

#[test]
fn the_only_window_is_declared_as_it_opens_unless_something_is_parked_that_it_does_not_cover() {
    let only = area(0, 10);
    for (index, is_declared) in [(9, true), (10, false)] {
        let (table, guard) = (WindowTable::new(1, 8), Shared::<Guard>::default());
        let (early, early_fate) = put(&guard);
        assert!(matches!(land(&table, 0, claim(0, index, index + 1), early), Outcome::Parked));
        let (freed, declared) =
            table.open((LANE, FIRST), [((0, only), guard.give())], true, (LANDED, NO_TICKETS));
        assert_eq!(declared, is_declared);
        drop(table.post_admitted(freed, LANDED));
        if !declared {
            drop(declare(&table, &[only]));
        }
        let landed = u32::from(is_declared);
        assert_eq!(early_fate.counts(), (landed, 1 - landed));
        let (outside, _) = put(&guard);
        assert!(matches!(land(&table, 0, claim(0, 10, 11), outside), Outcome::Refused(_)));
        let (inside, inside_fate) = put(&guard);
        assert!(matches!(land(&table, 0, claim(0, 0, 10), inside), Outcome::Posted(_)));
        assert_eq!(inside_fate.counts(), (1, 0));
        assert!(end(&table, FIRST, LANDED).is_some());
        let (next, _) = put(&guard);
        assert!(matches!(land(&table, 1, claim(0, 10, 11), next), Outcome::Parked));
    }
}

#[test]
fn a_get_in_one_of_two_windows_that_share_elements_keeps_the_guard_of_that_one() {
    let (table, guard) = (WindowTable::new(1, 8), Shared::<Guard>::default());
    let [first, second] = [area(0, 10), area(5, 15)].map(|of| Area { kind: Kind::Read, ..of });
    drop(declare(&table, &[first, second]));
    drop(open(&table, FIRST, (1, second), guard.give(), LANDED));
    let (get, fate) = put(&guard);
    let claim = Claim { kind: Kind::Read, ..claim(0, 5, 8) };
    let (outcome, freed) = table.land(LANE, FIRST, claim, true, get, FLYING);
    assert!(matches!(outcome, Outcome::Posted(_)) && freed.is_nothing());
    assert_eq!(fate.counts(), (1, 0));
    table.fail(&"a failure".into());
    drop(settle(&table, FLYING));
    assert!(!guard.dropped.load(Ordering::SeqCst), "an operation is under way in its region");
    drop(settle(&table, LANDED));
    assert!(guard.dropped.load(Ordering::SeqCst));
}

#[test]
fn a_patient_operation_comes_back_until_its_window_is_open() {
    let (table, guard) = (WindowTable::new(1, 1), Shared::<Guard>::default());
    let opened = table.opened();
    let (early, fate) = put(&guard);
    let early = land_patient(&table, claim(0, 0, 1), early);
    assert!(table.parked().is_empty());
    assert_eq!(table.opened(), opened);
    drop(table.open((LANE, FIRST), [((0, area(0, 10)), guard.give())], true, (LANDED, NO_TICKETS)));
    assert_eq!(table.opened(), opened + 1);
    let other = Shared::<Guard>::default().give();
    drop(table.open((LANE, Round(1)), [((0, area(0, 10)), other)], true, (LANDED, NO_TICKETS)));
    assert_eq!(table.opened(), opened + 1, "nobody waited");
    let Outcome::Retry(Patient(early)) = early else {
        panic!("it waits for a window");
    };
    assert!(matches!(land_patient(&table, claim(0, 0, 1), early), Outcome::Posted(_)));
    assert_eq!(fate.counts(), (1, 0));
}

/// An operation that is returned instead of being parked.
#[derive(Debug)]
struct Patient(Put);

impl Landing for Patient {
    fn post(&mut self) -> Post {
        Landing::post(&mut self.0)
    }

    fn is_patient(&self) -> bool {
        true
    }

    fn park(self) -> Box<dyn Parked> {
        self.0.park()
    }
}

fn land_patient(table: &WindowTable, claim: Claim, put: Put) -> Outcome<Patient> {
    table.land(LANE, FIRST, claim, false, Patient(put), LANDED).0
}

/// Tests many windows, which are found by the index.
#[test]
fn each_of_many_windows_takes_what_came_early_when_it_opens() {
    let (table, count) = (WindowTable::new(1, 99), 9);
    let puts: Vec<_> = (0..=count)
        .map(|index| {
            let (put, fate) = put(&Shared::<Guard>::default());
            let claim = claim(0, 10 * index + 9, 10 * index + 10);
            assert!(matches!(land(&table, 0, claim, put), Outcome::Parked));
            fate
        })
        .collect();
    let areas: Vec<Area> =
        (0..count).rev().map(|at| area(10 * at as u32, 10 * at as u32 + 10)).collect();
    drop(declare(&table, &areas));
    let counts = |at: u64| puts[at as usize].counts();
    assert_eq!(counts(count), (0, 1), "no window covers the last one");
    for at in 0..count {
        assert_eq!(counts(at), (0, 0));
        let number = (count - 1 - at) as usize;
        let window = (number, areas[number]);
        drop(open(&table, FIRST, window, puts[at as usize].guard.give(), LANDED));
        assert_eq!(counts(at), (1, 0));
    }
    assert!(table.parked().is_empty());
    assert!(end(&table, FIRST, LANDED).is_some());
}

/// Tests an entry that a later round uses again, which has other windows.
#[test]
fn a_round_has_the_windows_it_declares_and_none_of_an_earlier_one() {
    let table = WindowTable::new(1, 8);
    for (round, last) in [(0, 20), (1, 20), (2, 10), (3, 20), (4, 10)] {
        let areas = [area(0, 10), area(10, 20)];
        let areas = &areas[..last as usize / 10];
        drop(table.declare(LANE, Round(round), &mut areas_of(areas), LANDED));
        let guards: Vec<_> = areas.iter().map(|_| Shared::<Guard>::default()).collect();
        for (number, guard) in guards.iter().enumerate() {
            let window = (number, areas[number]);
            drop(open(&table, Round(round), window, guard.give(), LANDED));
        }
        let put = put(guards.last().unwrap()).0;
        let outcome = land(&table, round, claim(0, 15, 16), put);
        assert_eq!(matches!(outcome, Outcome::Posted(_)), last == 20, "{round}");
        assert!(end(&table, Round(round), LANDED).is_some());
    }
}

#[test]
fn what_no_window_covers_is_refused_when_all_are_declared_and_after_that_handed_back() {
    let (table, guard) = (WindowTable::new(1, 8), Shared::<Guard>::default());
    let (early, fate) = put(&guard);
    assert!(matches!(land(&table, 0, claim(0, 9, 11), early), Outcome::Parked));
    assert_eq!(declare(&table, &[area(0, 10), area(10, 20)]).sources(), [Rank(0)]);
    assert_eq!(fate.counts(), (0, 1));
    let (late, fate) = put(&guard);
    assert!(matches!(land(&table, 0, claim(0, 19, 21), late), Outcome::Refused(_)));
    assert_eq!(fate.counts(), (0, 0));
}

#[test]
fn a_round_that_has_ended_refuses_and_the_next_parks() {
    let (table, guard) = (WindowTable::new(1, 8), Shared::<Guard>::default());
    drop(declare(&table, &[area(0, 10)]));
    let (waiting, fate) = put(&guard);
    assert!(matches!(land(&table, 0, claim(0, 0, 1), waiting), Outcome::Parked));
    let freed = end(&table, FIRST, LANDED).unwrap().release();
    assert_eq!((freed.sources(), fate.counts()), (&[Rank(0)][..], (0, 1)));
    assert!(matches!(land(&table, 0, claim(0, 0, 1), put(&guard).0), Outcome::Refused(_)));
    assert!(matches!(land(&table, 1, claim(0, 0, 1), put(&guard).0), Outcome::Parked));
    // The window opens after the end of its round.
    let late = guard.give();
    drop(open(&table, FIRST, (0, area(0, 10)), late, LANDED));
    assert!(guard.dropped.load(Ordering::SeqCst));
}

#[test]
fn credits_are_exact_and_come_back() {
    let (table, guard) = (WindowTable::new(2, 2), Shared::<Guard>::default());
    let attempt = |source| land(&table, 0, claim(source, 0, 1), put(&guard).0);
    for source in [0, 1] {
        assert!(matches!(attempt(source), Outcome::Parked));
        assert!(matches!(attempt(source), Outcome::Parked));
        assert!(matches!(attempt(source), Outcome::Retry(_)));
    }
    drop(declare(&table, &[area(0, 1)]));
    assert!(matches!(attempt(0), Outcome::Retry(_)));
    let mut freed = open(&table, FIRST, (0, area(0, 1)), guard.give(), LANDED).sources().to_vec();
    freed.sort_unstable();
    assert_eq!(freed, [Rank(0), Rank(1)]);
    assert!(matches!(attempt(0), Outcome::Posted(_)));
}

#[test]
fn what_overlaps_something_that_is_landing_waits_for_it_and_nothing_else_does() {
    let (table, guard) = (WindowTable::new(2, 8), Shared::<Guard>::default());
    drop(declare(&table, &[area(0, 30)]));
    drop(open(&table, FIRST, (0, area(0, 30)), guard.give(), FLYING));
    let flying = |claim| table.land(LANE, FIRST, claim, true, put(&guard).0, FLYING).0;
    assert!(matches!(flying(claim(0, 0, 10)), Outcome::Posted(_)));
    assert!(matches!(flying(claim(1, 10, 20)), Outcome::Posted(_)));
    assert!(matches!(flying(claim(1, 9, 10)), Outcome::Parked));
    assert!(table.has_delayed());
    assert!(matches!(flying(claim(1, 20, 30)), Outcome::Posted(_)));
    assert!(settle(&table, FLYING).sources().is_empty());
    assert!(end(&table, FIRST, FLYING).is_none(), "not all has landed");
    assert_eq!(settle(&table, LANDED).sources(), [Rank(1)]);
    assert!(!table.has_delayed());
    assert!(!guard.dropped.load(Ordering::SeqCst));
    assert!(end(&table, FIRST, LANDED).is_some());
    assert!(guard.dropped.load(Ordering::SeqCst));
}

#[test]
fn of_overlapping_ones_that_came_early_one_lands_and_the_others_wait() {
    let (table, guard) = (WindowTable::new(2, 8), Shared::<Guard>::default());
    let fates = [1, 0].map(|source| {
        let (early, fate) = put(&guard);
        assert!(matches!(land(&table, 0, claim(source, 0, 1), early), Outcome::Parked));
        fate
    });
    drop(declare(&table, &[area(0, 1)]));
    assert_eq!(open(&table, FIRST, (0, area(0, 1)), guard.give(), FLYING).sources(), [Rank(1)]);
    assert!(table.has_delayed());
    assert_eq!(settle(&table, LANDED).sources(), [Rank(0)]);
    assert_eq!(fates.each_ref().map(|fate| fate.counts()), [(1, 0), (1, 0)]);
    assert!(!table.has_delayed());
}

#[test]
fn what_waits_on_the_last_lane_lands_when_its_window_is_free() {
    let (table, guard) = (WindowTable::new(1, 8), Shared::<Guard>::default());
    let last = LaneNumber(u8::MAX);
    let window = (0, area(0, 10));
    let (freed, _) =
        table.open((last, FIRST), [(window, guard.give())], true, (FLYING, NO_TICKETS));
    drop(freed);
    let flying = |put| table.land(last, FIRST, claim(0, 0, 1), true, put, FLYING).0;
    assert!(matches!(flying(put(&guard).0), Outcome::Posted(_)));
    let (waiting, fate) = put(&guard);
    assert!(matches!(flying(waiting), Outcome::Parked));
    drop(settle(&table, LANDED));
    assert_eq!(fate.counts(), (1, 0));
    assert!(table.end(last, FIRST, LANDED, &mut Freed::default()).is_ok());
}

/// Two puts of one source: the device keeps their order only if both are posted.
#[test]
fn a_round_that_is_ending_takes_nothing_more() {
    let (table, guard) = (WindowTable::new(1, 8), Shared::<Guard>::default());
    drop(declare(&table, &[area(0, 10)]));
    drop(open(&table, FIRST, (0, area(0, 10)), guard.give(), FLYING));
    let posted = table.land(LANE, FIRST, claim(0, 0, 1), true, put(&guard).0, FLYING);
    assert!(matches!(posted.0, Outcome::Posted(_)));
    assert!(end(&table, FIRST, FLYING).is_none());
    assert!(matches!(land(&table, 0, claim(0, 5, 6), put(&guard).0), Outcome::Refused(_)));
    let other = Shared::<Guard>::default().give();
    drop(open(&table, FIRST, (1, area(10, 20)), other, FLYING));
    assert!(matches!(land(&table, 0, claim(0, 15, 16), put(&guard).0), Outcome::Refused(_)));
    assert!(end(&table, FIRST, LANDED).is_some());
}

/// Tests that an operation parked for an overlap lands before the round ends, or is refused.
#[test]
fn clearing_drops_guards_and_operations() {
    let (table, guard) = (WindowTable::new(1, 8), Shared::<Guard>::default());
    drop(open(&table, FIRST, (0, area(0, 10)), guard.give(), LANDED));
    let (parked, fate) = put(&guard);
    assert!(matches!(land(&table, 3, claim(0, 0, 1), parked), Outcome::Parked));
    assert_eq!(Shared::strong_count(&fate), 2);
    table.clear();
    assert!(guard.dropped.load(Ordering::SeqCst));
    assert_eq!((Shared::strong_count(&fate), fate.counts()), (1, (0, 0)));
}

#[test]
fn after_a_failure_nothing_lands_and_windows_close_when_all_has_landed() {
    let (table, guard) = (WindowTable::new(2, 8), Shared::<Guard>::default());
    drop(declare(&table, &[area(0, 10), area(10, 20)]));
    drop(open(&table, FIRST, (0, area(0, 10)), guard.give(), FLYING));
    let posted = table.land(LANE, FIRST, claim(0, 0, 1), true, put(&guard).0, FLYING);
    assert!(matches!(posted.0, Outcome::Posted(_)));
    let fates = [0, 1].map(|round| {
        let (parked, fate) = put(&guard);
        let outcome = land(&table, round, claim(1, 10, 11), parked);
        assert!(matches!(outcome, Outcome::Parked));
        fate
    });
    table.fail(&"a failure".into());
    assert_eq!(fates.each_ref().map(|fate| fate.counts()), [(0, 1), (0, 1)]);
    assert!(table.parked().is_empty());
    assert!(matches!(land(&table, 1, claim(1, 0, 1), put(&guard).0), Outcome::Refused(_)));
    drop(settle(&table, FLYING));
    assert!(!guard.dropped.load(Ordering::SeqCst), "something may still land");
    assert!(table.has_delayed());
    drop(settle(&table, LANDED));
    assert!(guard.dropped.load(Ordering::SeqCst) && guard.poisoned.load(Ordering::SeqCst));
    assert!(!table.has_delayed());
    let late = Shared::<Guard>::default();
    drop(open(&table, FIRST, (1, area(10, 20)), late.give(), LANDED));
    assert!(late.dropped.load(Ordering::SeqCst) && late.poisoned.load(Ordering::SeqCst));
}
