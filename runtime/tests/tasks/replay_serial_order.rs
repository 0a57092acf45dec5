//! Any schedule of random graphs that are iterated gives the same bytes as running the tasks of
//! all their steps one after another.
//!
//! A program is a series of loops over one array, with tasks spawned between them. Some loops
//! repeat the graph of the one before, others have another. `TALPF_GRAPHS` sets the number of
//! programs.

use std::mem::take;

use crate::common;
use proptest::prelude::*;
use talpf_runtime::operator::{InOrder, Operator};
use talpf_runtime::{
    Array, Children, Error, InOut, Iteration, Ix1, Lend, Region, Runtime, current_step,
};

const LEN: usize = 24;

type Span = (usize, usize);

#[derive(Clone, Debug)]
struct Task {
    reads: Vec<Span>,
    writes: Vec<Span>,
    kind: Kind,
    /// `true` if the task drops its reading guards before it writes.
    drops_early: bool,
    priority: i32,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Closure,
    /// Guards borrowed, or taken out of their places to be dropped.
    Borrows,
    Async,
    /// Guards moved to another task.
    Gives,
    /// Work left to children.
    Lends,
    /// Work left to children, on weak accesses.
    LendsWeakly,
    /// Reductions into one of a few regions, in the order of the tasks.
    Reduces,
}

#[derive(Clone, Debug)]
struct Loop {
    steps: usize,
    unroll: usize,
    /// Tasks of each step of an iteration.
    tasks: Vec<Vec<Task>>,
    /// `true` if the previous loop is repeated instead.
    again: bool,
    /// Tasks spawned after the loop.
    after: Vec<Task>,
}

fn span() -> impl Strategy<Value = Span> {
    (0..LEN, 0..8usize).prop_map(|(start, len)| (start, (start + len).min(LEN)))
}

fn meet(a: &Span, b: &Span) -> bool {
    a.0.max(b.0) < a.1.min(b.1)
}

fn task() -> impl Strategy<Value = Task> {
    let kind = prop_oneof![
        2 => Just(Kind::Closure),
        2 => Just(Kind::Borrows),
        1 => Just(Kind::Async),
        1 => Just(Kind::Gives),
        1 => Just(Kind::Lends),
        1 => Just(Kind::LendsWeakly),
        2 => Just(Kind::Reduces),
    ];
    let spans = || prop::collection::vec(span(), 0..3);
    let priority = prop_oneof![4 => Just(0), 1 => -1..2i32];
    (spans(), spans(), kind, any::<bool>(), priority).prop_map(
        |(reads, mut writes, kind, drops_early, priority)| {
            if writes.len() == 2 && meet(&writes[0], &writes[1]) {
                writes.pop();
            }
            if let Kind::Reduces = kind {
                writes.truncate(1);
                let wide =
                    |span: &mut Span| *span = (span.0 / 8 * 8, (span.0 / 8 * 8 + 8).min(LEN));
                writes.iter_mut().for_each(wide);
            }
            let is_free = |read: &Span| !writes.iter().any(|write| meet(read, write));
            let reads = reads.into_iter().filter(is_free).collect();
            Task { reads, writes, kind, drops_early, priority }
        },
    )
}

fn one_loop() -> impl Strategy<Value = Loop> {
    let tasks = prop::collection::vec(prop::collection::vec(task(), 0..8), 3);
    let after = prop::collection::vec(task(), 0..3);
    (0..12usize, 1..4usize, tasks, any::<bool>(), after).prop_map(
        |(steps, unroll, tasks, again, mut after)| {
            after.iter_mut().for_each(|task| task.kind = Kind::Closure);
            Loop { steps, unroll, tasks, again, after }
        },
    )
}

/// Returns the loops of a program, with the repeated ones put in.
fn program() -> impl Strategy<Value = Vec<Loop>> {
    prop::collection::vec(one_loop(), 1..4).prop_map(|mut loops| {
        for index in 1..loops.len() {
            if loops[index].again {
                loops[index].unroll = loops[index - 1].unroll;
                loops[index].tasks = loops[index - 1].tasks.clone();
            }
        }
        loops
    })
}

fn mix(seed: u64, value: u64) -> u64 {
    (seed ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

/// Does the work of a task on the elements that it reads and writes in order.
fn compute<'a>(
    seed: u64,
    reads: impl Iterator<Item = u64>,
    writes: impl Iterator<Item = &'a mut u64>,
) {
    let mut seed = reads.fold(seed, mix);
    for cell in writes {
        seed = mix(seed, *cell);
        *cell = seed;
    }
}

fn run_serially(line: &mut [u64], task: &Task, seed: u64) {
    let reads: Vec<u64> = task.reads.iter().flat_map(|&(a, b)| line[a..b].to_vec()).collect();
    let mut seed = reads.into_iter().fold(seed, mix);
    for &(start, end) in &task.writes {
        for cell in &mut line[start..end] {
            if let Kind::Reduces = task.kind {
                *cell = mix(*cell, seed);
                continue;
            }
            seed = mix(seed, *cell);
            *cell = seed;
        }
    }
}

fn serial(program: &[Loop]) -> Vec<u64> {
    let mut line = vec![0; LEN];
    for Loop { steps, unroll, tasks, after, .. } in program {
        for step in 0..*steps {
            for (number, task) in tasks[step % unroll].iter().enumerate() {
                run_serially(&mut line, task, (100 * step + number) as u64);
            }
        }
        for task in after {
            run_serially(&mut line, task, 7);
        }
    }
    line
}

type Guards = (Vec<talpf_runtime::In<u64>>, Vec<InOut<u64>>);

fn run((reads, mut writes): Guards, seed: u64, drops_early: bool) {
    let read: Vec<u64> = reads.iter().flat_map(|guard| guard.to_vec()).collect();
    let reads = (!drops_early).then_some(reads);
    compute(seed, read.into_iter(), writes.iter_mut().flat_map(|guard| guard.iter_mut()));
    drop(reads);
}

/// An operator that is not commutative.
struct Mixes;

impl Operator<u64> for Mixes {
    fn identity() -> u64 {
        0
    }

    fn combine(into: &mut u64, from: u64) {
        *into = mix(*into, from);
    }
}

/// Leaves the work to one child, after another one that only reads.
fn leave_to_children(reads: &[Lend<u64>], writes: &[Lend<u64>], seed: u64) {
    let children = Children::of_current_task().unwrap();
    let reader = children.task("reader").input(reads.iter().map(Lend::all));
    reader.input(writes.iter().map(Lend::all)).spawn(|_, _| ()).unwrap();
    let child = children.task("child").input(reads.iter().map(Lend::all));
    let child = child.inout(writes.iter().map(Lend::all));
    child.spawn(move |reads, writes| run((reads, writes), seed, true)).unwrap();
}

type Regions<'a> = Vec<Region<'a, u64, Ix1>>;

fn regions<'a>(line: &'a Array<u64>, spans: &[Span]) -> Regions<'a> {
    spans.iter().map(|&(start, end)| line.region(start..end)).collect()
}

fn declare<'a>(
    runtime: &Runtime,
    line: &'a Array<u64>,
    iteration: &Iteration<'a>,
    task: &Task,
    number: usize,
) -> Result<(), Error> {
    let builder = iteration.task("mix").priority(task.priority);
    let (reads, writes) = (regions(line, &task.reads), regions(line, &task.writes));
    let drops_early = task.drops_early;
    let seed = move |step: usize| (100 * step + number) as u64;
    match task.kind {
        Kind::Closure => builder.input(reads).inout(writes).spawn(move |reads, writes| {
            let step = current_step().unwrap();
            run((reads, writes), seed(step), drops_early);
        }),
        Kind::Borrows => {
            let builder = builder.input(reads).inout(writes);
            builder.spawn_borrowed(move |reads, writes| {
                let step = current_step().unwrap();
                if drops_early {
                    return run((take(reads), take(writes)), seed(step), true);
                }
                let read: Vec<u64> = reads.iter().flat_map(|guard| guard.to_vec()).collect();
                let cells = writes.iter_mut().flat_map(|guard| guard.iter_mut());
                compute(seed(step), read.into_iter(), cells);
            })
        }
        Kind::Async => {
            let builder = builder.input(reads).inout(writes);
            builder.spawn_async(move |reads, writes| async move {
                let step = current_step().unwrap();
                tokio::task::yield_now().await;
                run((reads, writes), seed(step), drops_early);
            })
        }
        Kind::Gives => {
            let group = (**runtime).clone();
            builder.input(reads).inout(writes).spawn(move |reads, writes| {
                let step = current_step().unwrap();
                let taker = group.task("take");
                taker.spawn(move || run((reads, writes), seed(step), drops_early)).unwrap();
            })
        }
        Kind::Lends => builder.input(reads).inout(writes).spawn(move |reads, writes| {
            let step = current_step().unwrap();
            let reads: Vec<_> = reads.into_iter().map(|guard| guard.lend()).collect();
            let writes: Vec<_> = writes.into_iter().map(|guard| guard.lend()).collect();
            leave_to_children(&reads, &writes, seed(step));
        }),
        Kind::LendsWeakly => {
            let builder = builder.weak_input(reads).weak_inout(writes);
            builder.spawn(move |reads, writes| {
                let step = current_step().unwrap();
                leave_to_children(&reads, &writes, seed(step));
            })
        }
        Kind::Reduces => {
            let builder = builder.input(reads).reduction(writes, InOrder(Mixes));
            builder.spawn(move |reads, writes| {
                let step = current_step().unwrap();
                let read = reads.iter().flat_map(|guard| guard.to_vec());
                let seed = read.fold(seed(step), mix);
                writes.into_iter().for_each(|mut copy| copy.fill(seed));
            })
        }
    }
}

fn run_all(runtime: &Runtime, line: &Array<u64>, program: &[Loop]) {
    for Loop { steps, unroll, tasks, after, .. } in program {
        let declared = runtime.iterate_unrolled(*steps, *unroll, |iteration, nth| {
            let mut numbered = tasks[nth].iter().enumerate();
            numbered.try_for_each(|(number, task)| declare(runtime, line, iteration, task, number))
        });
        declared.unwrap();
        for task in after {
            let builder = runtime.task("after").input(regions(line, &task.reads));
            let builder = builder.inout(regions(line, &task.writes));
            builder.spawn(|reads, writes| run((reads, writes), 7, true)).unwrap();
        }
    }
}

fn end_of(runtime: &Runtime, line: &Array<u64>) -> Vec<u64> {
    let read = runtime.task("read").input(&line.all()).run(|line| line.to_vec()).unwrap();
    runtime.block_on(read).unwrap().unwrap()
}

fn parallel(program: &[Loop], tile: usize, workers: usize) -> Vec<u64> {
    let runtime = common::runtime(workers);
    let line = Array::new(&runtime, vec![0u64; LEN], tile).unwrap();
    run_all(&runtime, &line, program);
    let line = end_of(&runtime, &line);
    runtime.shut_down().unwrap();
    line
}

fn programs() -> u32 {
    std::env::var("TALPF_GRAPHS").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(programs()))]

    #[test]
    fn random_loops_equal_the_serial_order(
        program in program(),
        tile in 1..=LEN,
        workers in prop_oneof![Just(1usize), Just(2), Just(8)],
    ) {
        prop_assert_eq!(parallel(&program, tile, workers), serial(&program));
    }

    /// Cancels a loop, which leaves nothing behind: the tasks after it run as ever.
    #[test]
    fn a_random_cancellation_lets_everything_go(
        program in program(),
        next in program(),
        workers in prop_oneof![Just(1usize), Just(2), Just(8)],
        place in any::<prop::sample::Index>(),
    ) {
        let runtime = common::runtime(workers);
        let line = Array::new(&runtime, vec![0u64; LEN], 5).unwrap();
        let cancelled = &program[0];
        let unroll = cancelled.unroll;
        let at = place.index(12);
        let declared = runtime.iterate_unrolled(1_000 * unroll, unroll, |iteration, nth| {
            let group = (*runtime).clone();
            let task = iteration.task("cancels");
            task.spawn(move || { let step = current_step().unwrap(); if step == at * unroll { group.cancel("enough") } })?;
            let mut numbered = cancelled.tasks[nth].iter().enumerate();
            numbered.try_for_each(|(number, task)| declare(&runtime, &line, iteration, task, number))
        });
        declared.unwrap();
        let waited = runtime.wait_blocking();
        prop_assert!(matches!(waited, Err(Error::Cancelled { .. })), "{waited:?}");
        prop_assert_eq!(runtime.outstanding(), 0);
        runtime.task("clear").output(&line.all()).spawn(|mut line| line.fill(0)).unwrap();
        run_all(&runtime, &line, &next);
        prop_assert_eq!(end_of(&runtime, &line), serial(&next));
        runtime.shut_down().unwrap();
    }

    /// Runs a loop in which a task breaks: the loop stops, the wait fails, and the runtime runs
    /// another loop.
    #[test]
    fn a_random_panic_is_reported_and_leaves_nothing_behind(
        mut program in program(),
        workers in prop_oneof![Just(1usize), Just(2), Just(8)],
        place in any::<prop::sample::Index>(),
    ) {
        common::quiet_panics();
        let runtime = common::runtime(workers);
        let line = Array::new(&runtime, vec![0u64; LEN], 5).unwrap();
        let broken = program.remove(0);
        let breaks_at = place.index(broken.steps + 1);
        let mut breaks = false;
        let declared = runtime.iterate_unrolled(broken.steps, broken.unroll, |iteration, nth| {
            for (number, task) in broken.tasks[nth].iter().enumerate() {
                declare(&runtime, &line, iteration, task, number)?;
            }
            breaks = breaks_at < broken.steps;
            let task = iteration.task("breaks").inout(&line.all());
            task.spawn(move |_line| { let step = current_step().unwrap(); assert_ne!(step, breaks_at, "broken") })
        });
        declared.unwrap();
        let waited = runtime.wait_blocking();
        prop_assert_eq!(waited.is_err(), breaks);
        if let Err(error) = waited {
            prop_assert!(error.to_string().contains("broken"), "{error}");
        }
        runtime.shut_down().unwrap();
    }
}
