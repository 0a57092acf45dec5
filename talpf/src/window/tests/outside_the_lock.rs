//! Tests of operations that are posted outside the lock of the table.

use std::sync::Barrier;

use super::*;

const LANDED: HasLanded<'static> = &|_| true;

/// An operation that calls a function while it is posted.
struct Calling<'a>(&'a (dyn Fn() + Sync));

impl Landing for Calling<'_> {
    fn post(&mut self) -> Post {
        self.0();
        Post::All
    }

    fn park(self) -> Box<dyn Parked> {
        unreachable!("its window is idle")
    }
}

/// Both are of the same elements, by number, of two slots. The second begins once the first is no more
/// the only one, and is still being posted when the first ends.
#[test]
fn the_end_of_a_posting_is_not_that_of_another_one_in_the_round() {
    let (table, guard) = (WindowTable::new(2, 8), Shared::<Guard>::default());
    let [first, second] = [0, 1].map(|slot| Area { slot, ..area(0, 10) });
    drop(declare(&table, &[first, second]));
    drop(open(&table, FIRST, (0, first), guard.give(), LANDED));
    let in_second = |source, index, end| Claim { slot: 1, ..claim(source, index, end) };
    let [begun, may_end] = [Barrier::new(2), Barrier::new(2)];
    let waiting = || {
        begun.wait();
        may_end.wait();
    };
    std::thread::scope(|scope| {
        let begin_another = || {
            let beside = table.land(LANE, FIRST, claim(1, 8, 9), true, put(&guard).0, LANDED);
            assert!(matches!(beside.0, Outcome::Posted(_)));
            let other = Shared::<Guard>::default().give();
            drop(open(&table, FIRST, (1, second), other, LANDED));
            scope.spawn(|| {
                let claim = in_second(0, 0, 8);
                let (outcome, freed) =
                    table.land(LANE, FIRST, claim, false, Calling(&waiting), LANDED);
                assert!(matches!(outcome, Outcome::Posted(_)));
                drop(table.post_admitted(freed, LANDED));
            });
            begun.wait();
        };
        let first = table.land(LANE, FIRST, claim(0, 0, 8), false, Calling(&begin_another), LANDED);
        let overlaps = table.land(LANE, FIRST, in_second(1, 4, 5), true, put(&guard).0, LANDED);
        let ended = end(&table, FIRST, LANDED);
        // Before what follows may fail: the scope waits for the other thread.
        may_end.wait();
        assert!(matches!(first.0, Outcome::Posted(_)) && first.1.is_nothing());
        assert!(matches!(overlaps.0, Outcome::Parked) && ended.is_none());
    });
    assert!(table.parked().is_empty() && end(&table, FIRST, LANDED).is_some());
}
