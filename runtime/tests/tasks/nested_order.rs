//! Any schedule of a random tree of tasks gives the same bytes as running it depth first, each task
//! before its children, and failures keep the same tasks from running. over 400 lines: the oracle and
//! the trees that it judges.
//!
//! Tasks of one or two arrays declare some of what their parent has lent them, strongly or weakly,
//! mix what is theirs, lend it, and spawn children on it. They may let go of what no child will use
//! while others are still to be spawned, wait for the children, or have a region back at the end.
//! `TALPF_TREES` sets the number of trees.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use proptest::prelude::*;
use talpf_runtime::{
    Array, Children, In, InOut, Ix2, Lend, Matrix, Region, Runtime, TaskBuilder, Tiling,
};

use crate::common::{self, Log};

const LEN: usize = 24;
const ROWS: usize = 5;
const COLS: usize = 6;

/// A task as it is drawn: its uses are parts of its parent's.
#[derive(Clone, Debug)]
struct Draft {
    uses: Vec<DraftUse>,
    children: Vec<Draft>,
    habits: Habits,
}

#[derive(Clone, Debug)]
struct DraftUse {
    /// Which of the parent's uses it is a part of, and which part.
    of: prop::sample::Index,
    rows: (prop::sample::Index, prop::sample::Index),
    cols: (prop::sample::Index, prop::sample::Index),
    writes: bool,
    weak: bool,
}

#[derive(Clone, Debug)]
struct Habits {
    inline: bool,
    awaits: usize,
    drops_early: bool,
    waits: bool,
    fails: bool,
    has_back: Option<prop::sample::Index>,
}

/// One access, with its place in the array.
#[derive(Clone, Debug)]
struct Use {
    of: usize,
    matrix: bool,
    rows: Range<usize>,
    cols: Range<usize>,
    writes: bool,
    weak: bool,
}

#[derive(Debug)]
struct Task {
    number: u64,
    uses: Vec<Use>,
    children: Vec<Arc<Task>>,
    habits: Habits,
}

#[derive(Clone, Debug)]
struct Case {
    tile: usize,
    tiling: Tiling,
    workers: usize,
    roots: Vec<Draft>,
}

fn draft_use() -> impl Strategy<Value = DraftUse> {
    let part = || (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let often = || prop::bool::weighted(0.6);
    (any::<prop::sample::Index>(), part(), part(), often(), any::<bool>())
        .prop_map(|(of, rows, cols, writes, weak)| DraftUse { of, rows, cols, writes, weak })
}

fn habits() -> impl Strategy<Value = Habits> {
    let has_back = prop::option::weighted(0.2, any::<prop::sample::Index>());
    let seldom = || prop::bool::weighted(0.3);
    (any::<bool>(), 0..3usize, any::<bool>(), seldom(), prop::bool::weighted(0.1), has_back)
        .prop_map(|(inline, awaits, drops_early, waits, fails, has_back)| Habits {
            inline,
            awaits,
            drops_early,
            waits,
            fails,
            has_back,
        })
}

fn draft() -> impl Strategy<Value = Draft> {
    let uses = || prop::collection::vec(draft_use(), 0..4);
    let leaf =
        (uses(), habits()).prop_map(|(uses, habits)| Draft { uses, children: Vec::new(), habits });
    leaf.prop_recursive(3, 24, 4, move |inner| {
        (uses(), prop::collection::vec(inner, 0..5), habits())
            .prop_map(|(uses, children, habits)| Draft { uses, children, habits })
    })
}

fn case() -> impl Strategy<Value = Case> {
    let tiling = (1..=ROWS, 1..=COLS, 0..3usize, 0..3usize).prop_map(
        |(rows, cols, first_rows, first_cols)| Tiling { rows, cols, first_rows, first_cols },
    );
    let workers = prop_oneof![Just(1usize), Just(2), Just(8)];
    let roots = prop::collection::vec(draft(), 1..8);
    (1..=LEN, tiling, workers, roots).prop_map(|(tile, tiling, workers, roots)| Case {
        tile,
        tiling,
        workers,
        roots,
    })
}

/// The two arrays, as if a task around all others had lent them.
fn everything() -> [Use; 2] {
    let whole = |matrix, rows, cols| {
        let (rows, cols) = (0..rows, 0..cols);
        Use { of: usize::from(matrix), matrix, rows, cols, writes: true, weak: false }
    };
    [whole(false, 1, LEN), whole(true, ROWS, COLS)]
}

/// Gives drafts numbers and places; uses that conflict with an earlier one of the task are left
/// out.
fn settle(draft: &Draft, lent: &[Use], next: &mut u64) -> Arc<Task> {
    let number = *next;
    *next += 1;
    let mut uses: Vec<Use> = Vec::new();
    for wanted in draft.uses.iter().filter(|_| !lent.is_empty()) {
        let of = wanted.of.index(lent.len());
        let lender = &lent[of];
        let part = |whole: &Range<usize>, (a, b): (prop::sample::Index, prop::sample::Index)| {
            let a = whole.start + a.index(whole.len() + 1);
            let b = whole.start + b.index(whole.len() + 1);
            a.min(b)..a.max(b)
        };
        let rows = if lender.matrix { part(&lender.rows, wanted.rows) } else { 0..1 };
        let cols = part(&lender.cols, wanted.cols);
        let writes = wanted.writes && lender.writes;
        let new = Use { of, matrix: lender.matrix, rows, cols, writes, weak: wanted.weak };
        let meet = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        let conflicts = |old: &Use| {
            old.matrix == new.matrix
                && (old.writes || new.writes)
                && meet(&old.rows, &new.rows)
                && meet(&old.cols, &new.cols)
        };
        if !uses.iter().any(conflicts) {
            uses.push(new);
        }
    }
    let children = draft.children.iter().map(|child| settle(child, &uses, next)).collect();
    Arc::new(Task { number, uses, children, habits: draft.habits.clone() })
}

fn mix(seed: u64, value: u64) -> u64 {
    (seed ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

impl Task {
    /// The use that the task has back once its children are through.
    fn has_back(&self) -> Option<&Use> {
        let writes: Vec<&Use> = self.uses.iter().filter(|u| u.writes).collect();
        let back = self.habits.has_back.filter(|_| !writes.is_empty())?;
        Some(writes[back.index(writes.len())])
    }

    /// Whether the body panics before it does anything, in a run in which some do.
    fn fails(&self, run: &Run) -> bool {
        run.with_failures && self.habits.fails
    }
}

impl Use {
    fn cells(&self) -> impl Iterator<Item = usize> {
        let width = if self.matrix { COLS } else { LEN };
        let cols = self.cols.clone();
        self.rows.clone().flat_map(move |row| cols.clone().map(move |col| row * width + col))
    }
}

/// The result of a run: the arrays, and the tasks whose bodies ran.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// `None` where failures have left it undefined.
    line: Vec<Option<u64>>,
    matrix: Vec<Option<u64>>,
    ran: BTreeSet<u64>,
}

impl Outcome {
    fn array(&mut self, matrix: bool) -> &mut [Option<u64>] {
        if matrix { &mut self.matrix } else { &mut self.line }
    }

    fn is_spoilt(&mut self, access: &Use) -> bool {
        access.cells().any(|cell| self.array(access.matrix)[cell].is_none())
    }

    fn spoil(&mut self, access: &Use) {
        access.cells().for_each(|cell| self.array(access.matrix)[cell] = None);
    }

    fn change(&mut self, access: &Use, mut to: impl FnMut(usize, u64) -> u64) {
        for cell in access.cells() {
            let value = &mut self.array(access.matrix)[cell];
            *value = Some(to(cell, value.expect("a task does not run on what is spoilt")));
        }
    }

    /// Runs `task` and its children, one after another.
    fn run(&mut self, task: &Task, run: &Run) {
        let strong = || task.uses.iter().filter(|u| !u.weak);
        let is_kept = strong().any(|access| self.is_spoilt(access));
        if !is_kept {
            self.ran.insert(task.number);
        }
        if is_kept || task.fails(run) {
            task.uses.iter().filter(|u| u.writes).for_each(|access| self.spoil(access));
            return;
        }
        let mut seed = task.number;
        for access in strong() {
            self.change(access, |_, value| {
                seed = mix(seed, value);
                value
            });
        }
        for access in strong().filter(|u| u.writes) {
            self.change(access, |cell, _| {
                seed = mix(seed, cell as u64);
                seed
            });
        }
        task.children.iter().for_each(|child| self.run(child, run));
        if let Some(access) = task.has_back() {
            match self.is_spoilt(access) {
                true => self.spoil(access),
                false => self.change(access, |_, value| mix(task.number, value)),
            }
        }
    }
}

/// What all bodies of a run know.
#[derive(Clone)]
struct Run {
    with_failures: bool,
    ran: Log<u64>,
}

/// What a body holds, in the order of the uses.
enum Held {
    Reads(In<u64>),
    Writes(InOut<u64>),
    Lends(Lend<u64>),
    MatrixReads(In<u64, Ix2>),
    MatrixWrites(InOut<u64, Ix2>),
    MatrixLends(Lend<u64, Ix2>),
}

impl Held {
    fn eat(&self, seed: &mut u64) {
        let mut eat = |value: &u64| *seed = mix(*seed, *value);
        match self {
            Held::Reads(all) => all.iter().for_each(&mut eat),
            Held::Writes(all) => all.iter().for_each(&mut eat),
            Held::MatrixReads(all) => all.view().iter().for_each(&mut eat),
            Held::MatrixWrites(all) => all.view().iter().for_each(&mut eat),
            Held::Lends(_) | Held::MatrixLends(_) => {}
        }
    }

    fn fill(&mut self, access: &Use, seed: &mut u64) {
        let width = if access.matrix { COLS } else { LEN };
        for row in access.rows.clone() {
            let cells = match self {
                Held::Writes(all) => &mut all[..],
                Held::MatrixWrites(all) => all.row_mut(row - access.rows.start),
                _ => return,
            };
            for (cell, col) in cells.iter_mut().zip(access.cols.clone()) {
                *seed = mix(*seed, (row * width + col) as u64);
                *cell = *seed;
            }
        }
    }

    fn lend(self) -> Held {
        match self {
            Held::Reads(all) => Held::Lends(all.lend()),
            Held::Writes(all) => Held::Lends(all.lend()),
            Held::MatrixReads(all) => Held::MatrixLends(all.lend()),
            Held::MatrixWrites(all) => Held::MatrixLends(all.lend()),
            lent => lent,
        }
    }
}

/// Parts of what a lender has, as regions of it.
struct Lent<'a> {
    uses: &'a [Use],
    held: &'a [Option<Held>],
}

impl<'a> Lent<'a> {
    fn line(&self, part: &Use) -> Region<'a, u64> {
        let (lender, Some(Held::Lends(lend))) = (&self.uses[part.of], &self.held[part.of]) else {
            unreachable!("a lend of the line is kept while children use it");
        };
        let first = lender.cols.start;
        lend.region(part.cols.start - first..part.cols.end - first)
    }

    fn matrix(&self, part: &Use) -> Region<'a, u64, Ix2> {
        let (lender, Some(Held::MatrixLends(lend))) = (&self.uses[part.of], &self.held[part.of])
        else {
            unreachable!("a lend of the matrix is kept while children use it");
        };
        let (row, col) = (lender.rows.start, lender.cols.start);
        lend.region(
            part.rows.start - row..part.rows.end - row,
            part.cols.start - col..part.cols.end - col,
        )
    }
}

fn spawn<'r>(
    builder: TaskBuilder<'_>,
    task: &Arc<Task>,
    line: impl Fn(&Use) -> Region<'r, u64>,
    matrix: impl Fn(&Use) -> Region<'r, u64, Ix2>,
    run: &Run,
) {
    let of = |in_matrix: bool, writes: bool, weak: bool| {
        let is = move |u: &&Use| (u.matrix, u.writes, u.weak) == (in_matrix, writes, weak);
        task.uses.iter().filter(is)
    };
    let builder = if task.habits.inline { builder.inline() } else { builder };
    let task = Arc::clone(task);
    builder
        .inputs(of(false, false, false).map(&line))
        .inouts(of(false, true, false).map(&line))
        .weak_inputs(of(false, false, true).map(&line))
        .weak_inouts(of(false, true, true).map(&line))
        .inputs(of(true, false, false).map(&matrix))
        .inouts(of(true, true, false).map(&matrix))
        .weak_inputs(of(true, false, true).map(&matrix))
        .weak_inouts(of(true, true, true).map(&matrix))
        .spawn_async({
            let run = run.clone();
            move |a, b, c, d, e, f, g, h| {
                let (mut a, mut b) =
                    (a.into_iter().map(Held::Reads), b.into_iter().map(Held::Writes));
                let mut c = c.into_iter().map(Held::Lends);
                let mut d = d.into_iter().map(Held::Lends);
                let mut e = e.into_iter().map(Held::MatrixReads);
                let mut f = f.into_iter().map(Held::MatrixWrites);
                let mut g = g.into_iter().map(Held::MatrixLends);
                let mut h = h.into_iter().map(Held::MatrixLends);
                let held = task.uses.iter().map(|u| match (u.matrix, u.writes, u.weak) {
                    (false, false, false) => a.next(),
                    (false, true, false) => b.next(),
                    (false, false, true) => c.next(),
                    (false, true, true) => d.next(),
                    (true, false, false) => e.next(),
                    (true, true, false) => f.next(),
                    (true, false, true) => g.next(),
                    (true, true, true) => h.next(),
                });
                let held: Vec<Option<Held>> = held.collect();
                body(task, held, run)
            }
        })
        .unwrap();
}

async fn body(task: Arc<Task>, mut held: Vec<Option<Held>>, run: Run) {
    run.ran.add(task.number);
    assert!(!task.fails(&run), "as drawn");
    let mut seed = task.number;
    held.iter().flatten().for_each(|held| held.eat(&mut seed));
    for (held, access) in held.iter_mut().zip(&task.uses) {
        held.iter_mut().for_each(|held| held.fill(access, &mut seed));
    }
    if task.children.is_empty() && task.has_back().is_none() {
        return;
    }
    let children = Children::of_current_task().unwrap();
    let mut held: Vec<Option<Held>> = held.into_iter().map(|held| held.map(Held::lend)).collect();
    for (nth, child) in task.children.iter().enumerate() {
        let lent = Lent { uses: &task.uses, held: &held };
        spawn(children.task("child"), child, |u| lent.line(u), |u| lent.matrix(u), &run);
        if nth < task.habits.awaits {
            tokio::task::yield_now().await;
        }
        if task.habits.drops_early && task.has_back().is_none() {
            for (index, held) in held.iter_mut().enumerate() {
                let uses_it = |child: &Arc<Task>| child.uses.iter().any(|u| u.of == index);
                if !task.children[nth + 1..].iter().any(uses_it) {
                    held.take();
                }
            }
        }
    }
    if task.habits.waits {
        let waited = children.wait().await;
        assert!(waited.is_ok() || run.with_failures);
    }
    let Some(access) = task.has_back() else {
        return;
    };
    let index = task.uses.iter().position(|u| std::ptr::eq(u, access)).unwrap();
    let back = children.task("back");
    match &held[index] {
        Some(Held::Lends(lend)) => {
            let back = back.inout(&lend.all()).run(|all| all).unwrap();
            let mut all = match back.await {
                Err(_) if run.with_failures => return,
                all => all.unwrap(),
            };
            all.iter_mut().for_each(|cell| *cell = mix(task.number, *cell));
        }
        Some(Held::MatrixLends(lend)) => {
            let back = back.inout(&lend.all()).run(|all| all).unwrap();
            let mut all = match back.await {
                Err(_) if run.with_failures => return,
                all => all.unwrap(),
            };
            all.view_mut().iter_mut().for_each(|cell| *cell = mix(task.number, *cell));
        }
        _ => unreachable!("everything was lent"),
    }
}

fn parallel(runtime: &Runtime, case: &Case, roots: &[Arc<Task>], run: &Run) -> Outcome {
    let line = Array::new(runtime, vec![0u64; LEN], case.tile).unwrap();
    let matrix = Matrix::new(runtime, vec![0u64; ROWS * COLS], COLS, case.tiling).unwrap();
    for root in roots {
        let in_line = |u: &Use| line.region(u.cols.clone());
        let in_matrix = |u: &Use| matrix.region(u.rows.clone(), u.cols.clone());
        spawn(runtime.task("root"), root, in_line, in_matrix, run);
    }
    let waited = runtime.wait_blocking();
    assert!(waited.is_ok() || run.with_failures, "{waited:?}");
    let look = runtime.task("look").input(&line.all()).input(&matrix.all());
    let seen = look.run(|line, matrix| {
        (
            line.iter().copied().map(Some).collect(),
            matrix.view().iter().copied().map(Some).collect(),
        )
    });
    let (line, matrix) = runtime.block_on(seen.unwrap()).unwrap().unwrap();
    Outcome { line, matrix, ran: run.ran.take().into_iter().collect() }
}

/// Compares a run on the workers with one after another.
fn check(case: &Case, with_failures: bool) -> Result<(), TestCaseError> {
    common::quiet_panics();
    let _watchdog = common::watchdog();
    let run = Run { with_failures, ran: Log::new() };
    let mut next = 1;
    let roots: Vec<_> =
        case.roots.iter().map(|root| settle(root, &everything(), &mut next)).collect();
    let mut expected = Outcome {
        line: vec![Some(0); LEN],
        matrix: vec![Some(0); ROWS * COLS],
        ran: BTreeSet::new(),
    };
    roots.iter().for_each(|root| expected.run(root, &run));
    let runtime = common::runtime(case.workers);
    let mut seen = parallel(&runtime, case, &roots, &run);
    runtime.shut_down().unwrap();
    for (seen, expected) in [(&mut seen.line, &expected.line), (&mut seen.matrix, &expected.matrix)]
    {
        let undefined = seen.iter_mut().zip(expected).filter(|(_, expected)| expected.is_none());
        undefined.for_each(|(seen, _)| *seen = None);
    }
    prop_assert_eq!(seen, expected, "of {:?}", roots);
    Ok(())
}

fn trees() -> ProptestConfig {
    let cases = std::env::var("TALPF_TREES").ok().and_then(|count| count.parse().ok());
    ProptestConfig::with_cases(cases.unwrap_or(256))
}

proptest! {
    #![proptest_config(trees())]

    #[test]
    fn a_tree_gives_the_bytes_of_its_depth_first_run(case in case()) {
        check(&case, false)?;
    }

    #[test]
    fn a_tree_with_failures_runs_and_spoils_what_its_depth_first_run_does(case in case()) {
        check(&case, true)?;
    }
}
