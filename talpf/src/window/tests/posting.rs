//! Tests of parked operations that are posted once they are admitted.

use std::sync::Mutex;

use proptest::prelude::*;

use super::*;

const LANDED: HasLanded<'static> = &|_| true;

/// An operation with the code that posts it.
struct Posting<F>(F);

impl<F: FnMut() -> Post + Send + 'static> Landing for Posting<F> {
    fn post(&mut self) -> Post {
        (self.0)()
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self)
    }
}

impl<F: FnMut() -> Post + Send> Parked for Posting<F> {
    fn post(&mut self) -> Post {
        (self.0)()
    }

    fn refuse(self: Box<Self>) {
        panic!("every operation has a window");
    }
}

fn park(table: &WindowTable, claim: Claim, post: impl FnMut() -> Post + Send + 'static) {
    let (outcome, freed) = table.land(LANE, FIRST, claim, true, Posting(post), LANDED);
    assert!(matches!(outcome, Outcome::Parked));
    drop(freed);
}

/// Tests an operation that, as it is posted, opens another window of the same rank, puts into both
/// and tries to end the round.
#[test]
fn an_admitted_operation_may_use_the_windows_of_its_target_as_it_is_posted() {
    let table = Shared::new(WindowTable::new(1, 8));
    let guards = [(); 2].map(|()| Shared::<Guard>::default());
    let areas = [area(0, 10), area(10, 20)];
    drop(declare(&table, &areas));
    let (inner, inner_fate) = put(&guards[1]);
    let (beside, beside_fate) = put(&guards[0]);
    let (over, over_fate) = put(&guards[0]);
    let posting = {
        let (table, guards) = (Shared::clone(&table), guards.clone());
        let mut puts = Some((inner, beside, over));
        move || {
            let (inner, beside, over) = puts.take().unwrap();
            drop(open(&table, FIRST, (1, areas[1]), guards[1].give(), LANDED));
            for (claim, put) in [(claim(0, 10, 20), inner), (claim(0, 5, 6), beside)] {
                let (outcome, freed) = table.land(LANE, FIRST, claim, true, put, LANDED);
                assert!(matches!(outcome, Outcome::Posted(_)));
                drop(freed);
            }
            let (outcome, freed) = table.land(LANE, FIRST, claim(0, 0, 2), true, over, LANDED);
            assert!(matches!(outcome, Outcome::Parked), "it overlaps this one");
            drop(freed);
            assert!(end(&table, FIRST, LANDED).is_none(), "this one has not landed");
            Post::All
        }
    };
    park(&table, claim(0, 0, 1), posting);
    drop(open(&table, FIRST, (0, areas[0]), guards[0].give(), LANDED));
    assert_eq!(inner_fate.counts(), (1, 0));
    assert_eq!(beside_fate.counts(), (1, 0));
    assert_eq!(over_fate.counts(), (1, 0));
    assert!(end(&table, FIRST, LANDED).is_some());
}

#[test]
fn an_operation_without_room_is_parked_again_before_those_that_came_later() {
    let (table, guard) = (WindowTable::new(1, 8), Shared::<Guard>::default());
    let order = Shared::new(Mutex::new(Vec::new()));
    let mut full = 2;
    let note = |number: u32| {
        let order = Shared::clone(&order);
        move || {
            order.lock().unwrap().push(number);
            Post::All
        }
    };
    let posted = note(1);
    let finds_room = move || {
        let has_room = full == 0;
        full -= u32::from(!has_room);
        if has_room { posted() } else { Post::Nothing }
    };
    park(&table, claim(0, 0, 8), finds_room);
    park(&table, claim(0, 8, 16), note(2));
    drop(open(&table, FIRST, (0, area(0, 20)), guard.give(), LANDED));
    assert_eq!(*order.lock().unwrap(), [2]);
    assert_eq!(table.parked(), [(Rank(0), 1)], "it has kept its credit");
    assert!(table.has_delayed());
    let (outcome, freed) = table.land(LANE, FIRST, claim(0, 0, 4), true, Posting(note(3)), LANDED);
    assert!(matches!(outcome, Outcome::Posted(_)));
    drop(freed);
    drop(settle(&table, LANDED));
    assert_eq!(*order.lock().unwrap(), [2, 3, 1]);
    assert!(!table.has_delayed() && table.parked().is_empty());
    assert!(end(&table, FIRST, LANDED).is_some());
}

/// Tests the failure of a run while a parked operation is being posted, which then finds no room.
#[test]
fn an_operation_that_finds_no_room_in_a_failed_run_is_refused() {
    struct Fails(Shared<WindowTable>, Shared<Fate>);
    impl Parked for Fails {
        fn post(&mut self) -> Post {
            self.0.fail(&"a failure".into());
            Post::Nothing
        }

        fn refuse(self: Box<Self>) {
            self.1.refusals.fetch_add(1, Ordering::SeqCst);
        }
    }
    impl Landing for Fails {
        fn post(&mut self) -> Post {
            Post::Nothing
        }

        fn park(self) -> Box<dyn Parked> {
            Box::new(self)
        }
    }
    let table = Shared::new(WindowTable::new(1, 8));
    let (_, fate) = put(&Shared::<Guard>::default());
    let fails = Fails(Shared::clone(&table), Shared::clone(&fate));
    let (outcome, freed) = table.land(LANE, FIRST, claim(0, 0, 1), true, fails, LANDED);
    assert!(matches!(outcome, Outcome::Parked));
    drop(freed);
    drop(open(&table, FIRST, (0, area(0, 1)), fate.guard.give(), LANDED));
    assert_eq!(fate.counts(), (0, 1));
    drop(settle(&table, LANDED));
    assert!(fate.guard.poisoned.load(Ordering::SeqCst));
}

proptest! {
    /// Operations that overlap, on a device that carries each out at a later poll: no two are under
    /// way that overlap, and each is posted once.
    #[test]
    fn parked_operations_that_overlap_land_one_after_another(
        claims in prop::collection::vec((0..3u32, 0..12u64, 1..5u64), 1..20),
        lands in prop::collection::vec(any::<[bool; 3]>(), 0..40),
    ) {
        let table = WindowTable::new(3, 99);
        let under_way = Shared::new(Mutex::new(Vec::<Claim>::new()));
        let posts = Shared::new(Mutex::new(0));
        for &(source, index, len) in &claims {
            let claim = claim(source, index, index + len);
            let (under_way, posts) = (Shared::clone(&under_way), Shared::clone(&posts));
            let post = move || {
                let mut under_way = under_way.lock().unwrap();
                assert!(!under_way.iter().any(|other| other.conflicts(&claim)), "{claim:?}");
                under_way.push(claim);
                *posts.lock().unwrap() += 1;
                Post::All
            };
            park(&table, claim, post);
        }
        let has_landed =
            |source| !under_way.lock().unwrap().iter().any(|claim| claim.source == source);
        let guard = Shared::<Guard>::default();
        drop(open(&table, FIRST, (0, area(0, 20)), guard.give(), &has_landed));
        for lands in lands.into_iter().chain([[true; 3]; 20]) {
            under_way.lock().unwrap().retain(|claim| !lands[claim.source.index()]);
            drop(settle(&table, &has_landed));
        }
        prop_assert_eq!(*posts.lock().unwrap(), claims.len());
        under_way.lock().unwrap().clear();
        prop_assert!(end(&table, FIRST, &has_landed).is_some());
        prop_assert!(table.parked().is_empty());
    }
}
