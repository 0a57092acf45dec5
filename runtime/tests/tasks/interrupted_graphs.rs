//! Random graphs of ordered, commutative and reducing tasks, one of which may cancel the group or
//! panic: each task reads the values of the serial order, and without an early end the array has
//! them, too. Afterwards nothing is left, and the group works.
//!
//! `TALPF_GRAPHS` sets the number of graphs.

use std::sync::{Arc, OnceLock};

use proptest::prelude::*;
use talpf_runtime::operator::{InOrder, Operator, Sum};
use talpf_runtime::{Array, Config, Error, Region, Runtime};

use crate::common::{self, Drops};

const LEN: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    In,
    InOut,
    Commutative,
    Sum,
    InOrder,
}

const MODES: [Mode; 5] = [Mode::In, Mode::InOut, Mode::Commutative, Mode::Sum, Mode::InOrder];
/// Few, so that tasks often mean the same.
const PARTS: [(usize, usize); 6] = [(0, 4), (4, 8), (2, 6), (0, 12), (8, 12), (9, 10)];

#[derive(Clone, Debug)]
struct Task {
    uses: Vec<(Mode, (usize, usize))>,
    awaits: bool,
}

/// An interruption in the middle of a task's body.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Never,
    Cancels(usize),
    Panics(usize),
}

/// Neither associative nor commutative; 0 changes nothing.
struct Mix;

impl Operator<u64> for Mix {
    fn identity() -> u64 {
        0
    }

    fn combine(into: &mut u64, from: u64) {
        if from != 0 {
            *into = mix(*into, from);
        }
    }
}

fn mix(seed: u64, value: u64) -> u64 {
    (seed ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

fn addend(number: usize, at: usize) -> u64 {
    mix(number as u64 + 1, at as u64)
}

fn task() -> impl Strategy<Value = Task> {
    let single = (prop::sample::select(&MODES[..]), prop::sample::select(&PARTS[..]));
    let uses = prop::collection::vec(single, 1..4).prop_map(|uses| {
        let mut kept: Vec<(Mode, (usize, usize))> = Vec::new();
        for (mode, part) in uses {
            if kept.iter().all(|(_, other)| other.1 <= part.0 || part.1 <= other.0) {
                kept.push((mode, part));
            }
        }
        kept
    });
    (uses, any::<bool>()).prop_map(|(uses, awaits)| Task { uses, awaits })
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Never),
        (0..60usize).prop_map(End::Cancels),
        (0..60usize).prop_map(End::Panics),
    ]
}

/// Returns the values that each task reads, and the array in the end.
fn serial(tasks: &[Task]) -> (Vec<u64>, Vec<u64>) {
    let mut line = vec![0u64; LEN];
    let read = tasks.iter().enumerate().map(|(number, task)| {
        let mut seed = 0;
        for (mode, part) in &task.uses {
            let cells = line.iter_mut().enumerate().take(part.1).skip(part.0);
            for (at, cell) in cells {
                let addend = addend(number, at);
                match mode {
                    Mode::In => seed = mix(seed, *cell),
                    Mode::InOut => *cell = mix(*cell, addend),
                    Mode::Commutative | Mode::Sum => *cell = cell.wrapping_add(addend),
                    Mode::InOrder => Mix::combine(cell, addend),
                }
            }
        }
        seed
    });
    (read.collect(), line)
}

/// The values that each task that got so far has read, and the result of the wait.
struct Run {
    read: Vec<Option<u64>>,
    line: Vec<u64>,
    waited: Result<(), Error>,
}

fn parallel(tasks: &[Task], tile: usize, workers: usize, end: End) -> Run {
    let runtime = Runtime::new(Config { workers, ..Config::default() }).unwrap();
    let group = runtime.group("the group", 1);
    let line = Array::new(&group, vec![0u64; LEN], tile).unwrap();
    let read: Arc<[OnceLock<u64>]> = tasks.iter().map(|_| OnceLock::new()).collect();
    let drops = Drops::default();
    for (number, task) in tasks.iter().enumerate() {
        let Task { uses, awaits } = task.clone();
        let of = |mode| -> Vec<Region<'_, u64>> {
            let parts = task.uses.iter().filter(|u| u.0 == mode);
            parts.map(|(_, part)| line.region(part.0..part.1)).collect()
        };
        let (read, item, mine) = (Arc::clone(&read), drops.item(), group.clone());
        let task = group
            .task("mixed")
            .input(of(Mode::In))
            .inout(of(Mode::InOut))
            .commutative(of(Mode::Commutative))
            .reduction(of(Mode::Sum), Sum)
            .reduction(of(Mode::InOrder), InOrder(Mix));
        let spawned = task.spawn_async(
            move |ins, mut inouts, mut commutatives, mut sums, mut mixed| async move {
                let _item = item;
                let seed = ins.iter().flat_map(|part| part.iter()).fold(0, |seed, v| mix(seed, *v));
                read[number].set(seed).unwrap();
                if awaits {
                    tokio::task::yield_now().await;
                }
                let parts = |mode| uses.iter().filter(move |u| u.0 == mode).map(|u| u.1.0..u.1.1);
                each(&mut inouts, parts(Mode::InOut), |cell, at| {
                    *cell = mix(*cell, addend(number, at))
                });
                let add = |cell: &mut u64, at| *cell = cell.wrapping_add(addend(number, at));
                each(&mut commutatives, parts(Mode::Commutative), add);
                each(&mut sums, parts(Mode::Sum), add);
                match end {
                    End::Cancels(at) if at == number => mine.cancel("at random"),
                    End::Panics(at) => assert!(at != number, "at random"),
                    _ => {}
                }
                each(&mut mixed, parts(Mode::InOrder), |copy, at| *copy = addend(number, at));
            },
        );
        spawned.unwrap();
    }
    let waited = group.wait_blocking();
    assert_eq!((drops.count(), group.outstanding()), (tasks.len(), 0));
    let last = group.task("line").inout(&line.all()).run(|line| line.to_vec()).unwrap();
    let line = runtime.block_on(last).unwrap().unwrap();
    runtime.shut_down().unwrap();
    Run { read: read.iter().map(|read| read.get().copied()).collect(), line, waited }
}

/// Changes every element of the guards, each of which has a part of the array.
fn each<G: std::ops::DerefMut<Target = [u64]>>(
    guards: &mut [G],
    parts: impl Iterator<Item = std::ops::Range<usize>>,
    change: impl Fn(&mut u64, usize),
) {
    for (guard, part) in guards.iter_mut().zip(parts) {
        guard.iter_mut().zip(part).for_each(|(cell, at)| change(cell, at));
    }
}

fn graphs() -> u32 {
    std::env::var("TALPF_GRAPHS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(graphs()))]

    #[test]
    fn tasks_that_run_see_what_the_serial_order_gives(
        tasks in prop::collection::vec(task(), 1..60),
        tile in 1..=LEN,
        workers in prop::sample::select(&[1usize, 2, 8][..]),
        end in end(),
    ) {
        common::quiet_panics();
        let (read, line) = serial(&tasks);
        let run = parallel(&tasks, tile, workers, end);
        for (number, (seen, serial)) in run.read.iter().zip(&read).enumerate() {
            prop_assert!(seen.is_none_or(|seen| seen == *serial), "task {}", number);
        }
        let ends = matches!(end, End::Cancels(at) | End::Panics(at) if at < tasks.len());
        match (end, run.waited) {
            (End::Cancels(_), Err(Error::Cancelled { .. })) if ends => {}
            (End::Panics(_), Err(Error::TaskFailed(_))) if ends => {}
            (_, Ok(())) if !ends => {
                prop_assert!(run.read.iter().all(Option::is_some));
                prop_assert_eq!(run.line, line);
            }
            (_, waited) => prop_assert!(false, "{end:?} and the wait says {waited:?}"),
        }
    }
}
