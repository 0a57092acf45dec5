//! Random graphs with concurrent and commutative tasks among ordered ones: every read sees the
//! values of the serial order, and two commutative bodies are never in one element at a time.
//!
//! The numbers that the unordered tasks add do not depend on their order. `TALPF_GRAPHS` sets the
//! number of graphs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;
use talpf_runtime::{Array, Config, Region, Runtime};

const LEN: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    In,
    InOut,
    Concurrent,
    Commutative,
}

const MODES: [Mode; 4] = [Mode::In, Mode::InOut, Mode::Concurrent, Mode::Commutative];

#[derive(Clone, Debug)]
struct Task {
    uses: Vec<(Mode, std::ops::Range<usize>)>,
    /// `true` if the body awaits between its guards and its work.
    awaits: bool,
}

fn task() -> impl Strategy<Value = Task> {
    let part = (0..LEN, 0..=LEN / 2).prop_map(|(start, length)| start..(start + length).min(LEN));
    let uses = prop::collection::vec((prop::sample::select(&MODES[..]), part), 1..4);
    let apart = uses.prop_map(|uses| {
        let mut kept: Vec<(Mode, std::ops::Range<usize>)> = Vec::new();
        for (mode, part) in uses {
            if kept.iter().all(|(_, other)| other.end <= part.start || part.end <= other.start) {
                kept.push((mode, part));
            }
        }
        kept
    });
    (apart, any::<bool>()).prop_map(|(uses, awaits)| Task { uses, awaits })
}

fn mix(seed: u64, value: u64) -> u64 {
    (seed ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

/// Returns the number that task `number` adds to element `at`.
fn addend(number: usize, at: usize) -> u64 {
    mix(number as u64 + 1, at as u64)
}

/// Returns the values that each task has read, and the array in the end.
fn serial(tasks: &[Task]) -> (Vec<u64>, Vec<u64>) {
    let mut line = vec![0u64; LEN];
    let read = tasks.iter().enumerate().map(|(number, task)| {
        let parts = |mode| task.uses.iter().filter(move |u| u.0 == mode).flat_map(|u| u.1.clone());
        let seed = parts(Mode::In).fold(0, |seed, at| mix(seed, line[at]));
        parts(Mode::InOut).for_each(|at| line[at] = mix(line[at], addend(number, at)));
        for at in parts(Mode::Concurrent).chain(parts(Mode::Commutative)) {
            line[at] = line[at].wrapping_add(addend(number, at));
        }
        seed
    });
    (read.collect(), line)
}

/// Marks the elements that a commutative body is in.
struct Inside<'a>(&'a [AtomicBool], std::ops::Range<usize>);

impl<'a> Inside<'a> {
    fn enter(busy: &'a [AtomicBool], part: &std::ops::Range<usize>) -> Self {
        for at in part.clone() {
            assert!(!busy[at].swap(true, Ordering::Relaxed), "two bodies are in element {at}");
        }
        Inside(busy, part.clone())
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.1.clone().for_each(|at| self.0[at].store(false, Ordering::Relaxed));
    }
}

fn parallel(tasks: &[Task], tile: usize, workers: usize) -> (Vec<u64>, Vec<u64>) {
    let runtime = Runtime::new(Config { workers, ..Config::default() }).unwrap();
    let zeros = (0..LEN).map(|_| AtomicU64::new(0)).collect();
    let line: Array<AtomicU64> = Array::new(&runtime, zeros, tile).unwrap();
    let read = Array::new(&runtime, vec![0u64; tasks.len()], 1).unwrap();
    let busy: Arc<[AtomicBool]> = (0..LEN).map(|_| AtomicBool::new(false)).collect();
    for (number, task) in tasks.iter().enumerate() {
        let Task { uses, awaits } = task.clone();
        let of = |mode| -> Vec<Region<'_, AtomicU64>> {
            let parts = task.uses.iter().filter(|u| u.0 == mode);
            parts.map(|(_, part)| line.region(part.clone())).collect()
        };
        let busy = Arc::clone(&busy);
        let task = runtime
            .task("mixed")
            .input(of(Mode::In))
            .inout(of(Mode::InOut))
            .concurrent(of(Mode::Concurrent))
            .commutative(of(Mode::Commutative))
            .output(&read.tile(number));
        let spawned = task.spawn_async(
            move |ins, mut inouts, shared, mut commutatives, mut read| async move {
                let parts = |mode| uses.iter().filter(move |u| u.0 == mode).map(|u| &u.1);
                let marks: Vec<_> =
                    parts(Mode::Commutative).map(|part| Inside::enter(&busy, part)).collect();
                if awaits {
                    tokio::task::yield_now().await;
                }
                let cells = ins.iter().flat_map(|part| part.iter());
                read[0] = cells.fold(0, |seed, cell| mix(seed, cell.load(Ordering::Relaxed)));
                for (part, range) in inouts.iter_mut().zip(parts(Mode::InOut)) {
                    for (cell, at) in part.iter_mut().zip(range.clone()) {
                        *cell.get_mut() = mix(*cell.get_mut(), addend(number, at));
                    }
                }
                for (part, range) in shared.iter().zip(parts(Mode::Concurrent)) {
                    for (cell, at) in part.iter().zip(range.clone()) {
                        cell.fetch_add(addend(number, at), Ordering::Relaxed);
                    }
                }
                for (part, range) in commutatives.iter_mut().zip(parts(Mode::Commutative)) {
                    for (cell, at) in part.iter_mut().zip(range.clone()) {
                        *cell.get_mut() = cell.get_mut().wrapping_add(addend(number, at));
                    }
                }
                drop(marks);
            },
        );
        spawned.unwrap();
    }
    let line = runtime.task("line").input(&line.all());
    let line = line.run(|line| line.iter().map(|cell| cell.load(Ordering::Relaxed)).collect());
    let read = runtime.task("read").input(&read.all()).run(|read| read.to_vec()).unwrap();
    let read = runtime.block_on(read).unwrap().unwrap();
    let line = runtime.block_on(line.unwrap()).unwrap().unwrap();
    runtime.shut_down().unwrap();
    (read, line)
}

fn graphs() -> u32 {
    std::env::var("TALPF_GRAPHS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(graphs()))]

    #[test]
    fn sums_in_any_order_equal_the_serial_order(
        tasks in prop::collection::vec(task(), 1..60),
        tile in 1..=LEN,
        workers in prop::sample::select(&[1usize, 2, 8][..]),
    ) {
        prop_assert_eq!(parallel(&tasks, tile, workers), serial(&tasks));
    }
}
