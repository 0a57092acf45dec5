use std::ops::Range;

use proptest::prelude::*;

use super::*;

/// Creates an access with its number as the generation.
fn entry(number: u32, cols: Range<u32>) -> Entry {
    let head: &'static AccessHead = Box::leak(Box::new(AccessHead::new()));
    head.open(number);
    let rect = Rect::new(0, 1, cols.start, cols.end);
    Entry { head, generation: number, task: RecordId::of_test(number), rect }
}

fn linked(map: &mut BottomMap, new: Entry, mode: Mode) -> Vec<u32> {
    let mut found = Vec::new();
    map.register(new, mode, |entry| {
        found.push(entry.generation);
        true
    });
    found.sort_unstable();
    found
}

#[test]
fn readers_wait_for_overlapping_writers_only() {
    let mut map = BottomMap::default();
    assert!(linked(&mut map, entry(1, 0..4), Mode::InOut).is_empty());
    assert!(linked(&mut map, entry(2, 4..8), Mode::InOut).is_empty());
    assert_eq!(linked(&mut map, entry(3, 2..4), Mode::In), [1]);
    assert_eq!(linked(&mut map, entry(4, 3..5), Mode::In), [1, 2]);
}

#[test]
fn a_covering_write_supersedes_what_it_covers() {
    let mut map = BottomMap::default();
    linked(&mut map, entry(1, 0..4), Mode::InOut);
    linked(&mut map, entry(2, 0..8), Mode::In);
    assert_eq!(linked(&mut map, entry(3, 0..4), Mode::InOut), [1, 2]);
    assert_eq!(linked(&mut map, entry(4, 0..4), Mode::In), [3], "1 is superseded");
    assert_eq!(linked(&mut map, entry(5, 4..8), Mode::InOut), [2], "2 still reads 4..8");
}

#[test]
fn an_access_to_the_whole_tile_meets_every_other() {
    let mut map = BottomMap::default();
    let whole = |map: &mut BottomMap, number, mode| {
        let mut found = Vec::new();
        map.register_whole(entry(number, 0..8), mode, |entry| {
            found.push(entry.generation);
            true
        });
        found.sort_unstable();
        found
    };
    linked(&mut map, entry(1, 0..4), Mode::InOut);
    assert_eq!(whole(&mut map, 2, Mode::In), [1]);
    assert_eq!(whole(&mut map, 3, Mode::In), [1], "reads do not meet");
    assert_eq!(whole(&mut map, 4, Mode::InOut), [1, 2, 3]);
    assert_eq!(linked(&mut map, entry(5, 0..1), Mode::In), [4], "the others are superseded");
}

#[test]
fn unordered_accesses_meet_all_but_those_of_their_mode() {
    let mut map = BottomMap::default();
    linked(&mut map, entry(1, 0..8), Mode::InOut);
    linked(&mut map, entry(2, 0..8), Mode::In);
    assert_eq!(linked(&mut map, entry(3, 0..4), Mode::Commutative), [1, 2]);
    assert_eq!(linked(&mut map, entry(4, 0..8), Mode::Commutative), [1, 2], "not 3");
    assert_eq!(linked(&mut map, entry(5, 0..4), Mode::Concurrent), [1, 2, 3, 4]);
    assert_eq!(linked(&mut map, entry(6, 0..1), Mode::Concurrent), [1, 2, 3, 4], "not 5");
    assert_eq!(linked(&mut map, entry(7, 4..8), Mode::In), [1, 4]);
    assert_eq!(linked(&mut map, entry(8, 0..8), Mode::Out), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(linked(&mut map, entry(9, 0..8), Mode::Commutative), [8]);
}

#[test]
fn only_reads_do_not_grow_a_tile() {
    let mut map = BottomMap::default();
    for number in 0..10_000 {
        let read = entry(number, 0..8);
        read.head.close(number);
        map.register(read, Mode::In, |_| true);
    }
    assert!(map.reads.len() < 32, "{} entries", map.reads.len());
}

#[test]
fn commutative_accesses_of_one_task_meet_each_other() {
    let mut map = BottomMap::default();
    let of_task = |task, number, cols: Range<u32>| Entry {
        task: RecordId::of_test(task),
        ..entry(number, cols)
    };
    assert!(linked(&mut map, of_task(1, 1, 0..4), Mode::Commutative).is_empty());
    assert!(linked(&mut map, of_task(2, 2, 0..4), Mode::Commutative).is_empty());
    assert!(linked(&mut map, of_task(2, 3, 4..8), Mode::Commutative).is_empty());
    assert_eq!(linked(&mut map, of_task(2, 4, 2..8), Mode::Commutative), [2, 3]);
    assert!(linked(&mut map, of_task(1, 5, 0..8), Mode::Commutative).is_empty());
    assert_eq!(linked(&mut map, entry(6, 0..8), Mode::In), [1, 2, 3, 4, 5]);
}

/// The oracle of a map, which must keep and link the same accesses: a list that is searched item by
/// item.
#[derive(Default)]
struct Oracle(Vec<(Entry, Mode)>);

impl Oracle {
    fn register(&mut self, new: Entry, mode: Mode) -> Vec<u32> {
        let mut linked = Vec::new();
        let supersedes = matches!(mode, Mode::Out | Mode::InOut);
        self.0.retain(|(old, old_mode)| {
            let meets = match mode {
                Mode::In | Mode::Concurrent => mode != *old_mode,
                Mode::Commutative => mode != *old_mode || old.task == new.task,
                _ => true,
            };
            if !meets || !old.rect.overlaps(&new.rect) || !old.is_open() {
                return old.is_open();
            }
            linked.push(old.generation);
            !(supersedes && new.rect.covers(&old.rect))
        });
        self.0.push((new, mode));
        linked.sort_unstable();
        linked
    }

    fn open(&self) -> Vec<u32> {
        let open = self.0.iter().filter(|(entry, _)| entry.is_open());
        let mut open: Vec<u32> = open.map(|(entry, _)| entry.generation).collect();
        open.sort_unstable();
        open
    }
}

fn open_in(map: &BottomMap) -> Vec<u32> {
    let mut open = Vec::new();
    map.any(|entry| {
        open.extend(entry.is_open().then_some(entry.generation));
        false
    });
    open.sort_unstable();
    open
}

const SIDE: u32 = 64;

/// Pieces of a row, blocks, strips of either direction and, now and then, the whole tile.
fn rects() -> impl Strategy<Value = Rect> {
    let at = || 0..SIDE;
    prop_oneof![
        8 => (0..SIDE).prop_map(|at| Rect::new(0, 1, 4 * at, 4 * at + 4)),
        8 => (at(), at()).prop_map(|(row, col)| Rect::new(row, row + 1, col, col + 1)),
        4 => (at(), at(), 1..8u32, 1..8u32)
            .prop_map(|(row, col, rows, cols)| Rect::new(row, row + rows, col, col + cols)),
        2 => at().prop_map(|row| Rect::new(row, row + 1, 0, 4 * SIDE)),
        2 => at().prop_map(|col| Rect::new(0, SIDE, col, col + 1)),
        1 => Just(Rect::new(0, 2 * SIDE, 0, 4 * SIDE)),
    ]
}

fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![
        4 => Just(Mode::In),
        4 => Just(Mode::InOut),
        1 => Just(Mode::Concurrent),
        2 => Just(Mode::Commutative),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Accesses of tasks that have up to three of them; some that are open close before each.
    #[test]
    fn a_map_links_and_keeps_what_a_list_does(
        steps in prop::collection::vec((rects(), modes(), 0..3u32, any::<u32>()), 1..1500),
        closes in 0..3u32,
    ) {
        let (mut map, mut oracle) = (BottomMap::default(), Oracle::default());
        let mut open: Vec<Entry> = Vec::new();
        let mut task = 0;
        for (number, (rect, mode, share, random)) in (1..).zip(steps) {
            task = if share == 0 { number } else { task };
            if random % 4 < closes && !open.is_empty() {
                let closed = open.swap_remove(random as usize % open.len());
                closed.head.close(closed.generation);
            }
            let new = Entry { rect, task: RecordId::of_test(task), ..entry(number, 0..1) };
            open.push(new);
            let mut found = Vec::new();
            map.register(new, mode, |earlier| {
                let is_open = earlier.is_open();
                found.extend(is_open.then_some(earlier.generation));
                is_open
            });
            found.sort_unstable();
            prop_assert_eq!(found, oracle.register(new, mode), "{:?} {}", mode, rect);
            if number % 64 == 0 {
                prop_assert_eq!(open_in(&map), oracle.open());
            }
        }
        prop_assert_eq!(open_in(&map), oracle.open());
        // Accesses that children of a weak access, and tasks behind a lent one, find.
        for mode in [Mode::In, Mode::InOut, Mode::Concurrent, Mode::Commutative] {
            let rect = Rect::new(0, SIDE / 2, 3, SIDE);
            let mut found = Vec::new();
            map.for_each_conflict(&rect, mode, |entry| found.push(entry.generation));
            found.sort_unstable();
            let meets = |(entry, old_mode): &&(Entry, Mode)| {
                let ordered = *old_mode != mode || mode == Mode::InOut;
                ordered && entry.rect.overlaps(&rect) && entry.is_open()
            };
            let mut expected: Vec<u32> =
                oracle.0.iter().filter(meets).map(|(entry, _)| entry.generation).collect();
            expected.sort_unstable();
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(open_in(&map.inherit(&rect, mode)), expected);
        }
    }
}
