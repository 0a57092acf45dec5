//! Any schedule of a random tree of tasks gives the same bytes as running it depth first, each task
//! before its children, and failures keep the same tasks from running; a tree that is cancelled
//! leaves nothing behind. over 400 lines: the oracle and the bodies that it judges.
//!
//! Tasks of one or two arrays declare some of what their parent has lent them, strongly or weakly,
//! change their regions, lend them, and spawn children on them. They may release regions that no
//! further child will use before they spawn others, wait for the children, or get a region back at
//! the end. Tasks without children may write together with others, with commutative accesses or
//! reductions ([`joined`]): not if some fail, because the tasks that then fail with them depend on
//! the order. Between the roots some steps of a replayed graph go over one of the arrays.
//! `TALPF_TREES` sets the number of trees.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use talpf_runtime::{
    Array, Children, Error, Group, In, InOut, Ix2, Lend, Matrix, Region, Runtime, TaskBuilder,
    current_step,
};

use crate::common::{self, Log};

use drafts::{Case, Task, Use, case, everything, settle};

mod drafts;
mod joined;

const LEN: usize = 24;
const ROWS: usize = 5;
const COLS: usize = 6;

fn mix(seed: u64, value: u64) -> u64 {
    (seed ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

impl Task {
    /// Returns the use that the task gets back once its children are complete.
    fn has_back(&self) -> Option<&Use> {
        let writes: Vec<&Use> = self.uses.iter().filter(|u| u.writes).collect();
        let has_any = self.habits.joins.is_none() && !writes.is_empty();
        let back = self.habits.has_back.filter(|_| has_any)?;
        Some(writes[back.index(writes.len())])
    }

    /// Returns `true` if the body panics before it does anything, in a run in which some do.
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

    fn is_poisoned(&mut self, access: &Use) -> bool {
        access.cells().any(|cell| self.array(access.matrix)[cell].is_none())
    }

    fn poison(&mut self, access: &Use) {
        access.cells().for_each(|cell| self.array(access.matrix)[cell] = None);
    }

    fn change(&mut self, access: &Use, mut to: impl FnMut(usize, u64) -> u64) {
        for cell in access.cells() {
            let value = &mut self.array(access.matrix)[cell];
            *value = Some(to(cell, value.expect("a task does not run on what is poisoned")));
        }
    }

    /// Runs `task` and its children, one after another.
    fn run(&mut self, task: &Task, run: &Run) {
        let strong = || task.uses.iter().filter(|u| !u.weak);
        let is_kept = strong().any(|access| self.is_poisoned(access));
        if !is_kept {
            self.ran.insert(task.number);
        }
        if is_kept || task.fails(run) {
            task.uses.iter().filter(|u| u.writes).for_each(|access| self.poison(access));
            return;
        }
        let mut seed = task.number;
        for access in strong().filter(|u| u.joins.is_none()) {
            self.change(access, |_, value| {
                seed = mix(seed, value);
                value
            });
        }
        for access in strong().filter(|u| u.joins.is_some()) {
            self.change(access, |cell, value| value ^ mix(seed, cell as u64));
        }
        for access in strong().filter(|u| u.writes && u.joins.is_none()) {
            self.change(access, |cell, _| {
                seed = mix(seed, cell as u64);
                seed
            });
        }
        task.children.iter().for_each(|child| self.run(child, run));
        if let Some(access) = task.has_back() {
            match self.is_poisoned(access) {
                true => self.poison(access),
                false => self.change(access, |_, value| mix(task.number, value)),
            }
        }
    }

    /// Runs the steps of the replayed graph, which has all of the line as `inout`.
    fn replay(&mut self, steps: usize) {
        if steps > 0 && self.line.contains(&None) {
            self.line.fill(None);
        }
        for step in 0..steps {
            let cells = self.line.iter_mut().flatten();
            cells.for_each(|cell| *cell = mix(step as u64, *cell));
        }
    }
}

/// State shared by all bodies of a run.
#[derive(Clone)]
struct Run {
    with_failures: bool,
    /// The task that cancels the group of all.
    cancels: Option<(u64, Group)>,
    ran: Log<u64>,
}

impl Run {
    /// Returns `true` if tasks may find that others have failed.
    fn is_rough(&self) -> bool {
        self.with_failures || self.cancels.is_some()
    }

    /// Notes that the body of a task runs.
    fn begin(&self, task: &Task) {
        self.ran.add(task.number);
        if let Some((_, group)) = self.cancels.as_ref().filter(|(at, _)| *at == task.number) {
            group.cancel("as drawn");
        }
    }
}

/// The guards of a body, in the order of the uses.
enum HeldGuard {
    Reads(In<u64>),
    Writes(InOut<u64>),
    Lends(Lend<u64>),
    MatrixReads(In<u64, Ix2>),
    MatrixWrites(InOut<u64, Ix2>),
    MatrixLends(Lend<u64, Ix2>),
}

impl HeldGuard {
    fn eat(&self, seed: &mut u64) {
        let mut eat = |value: &u64| *seed = mix(*seed, *value);
        match self {
            HeldGuard::Reads(all) => all.iter().for_each(&mut eat),
            HeldGuard::Writes(all) => all.iter().for_each(&mut eat),
            HeldGuard::MatrixReads(all) => all.view().iter().for_each(&mut eat),
            HeldGuard::MatrixWrites(all) => all.view().iter().for_each(&mut eat),
            HeldGuard::Lends(_) | HeldGuard::MatrixLends(_) => {}
        }
    }

    fn fill(&mut self, access: &Use, seed: &mut u64) {
        let width = if access.matrix { COLS } else { LEN };
        for row in access.rows.clone() {
            let cells = match self {
                HeldGuard::Writes(all) => &mut all[..],
                HeldGuard::MatrixWrites(all) => all.row_mut(row - access.rows.start),
                _ => return,
            };
            for (cell, col) in cells.iter_mut().zip(access.cols.clone()) {
                *seed = mix(*seed, (row * width + col) as u64);
                *cell = *seed;
            }
        }
    }

    fn lend(self) -> HeldGuard {
        match self {
            HeldGuard::Reads(all) => HeldGuard::Lends(all.lend()),
            HeldGuard::Writes(all) => HeldGuard::Lends(all.lend()),
            HeldGuard::MatrixReads(all) => HeldGuard::MatrixLends(all.lend()),
            HeldGuard::MatrixWrites(all) => HeldGuard::MatrixLends(all.lend()),
            lent => lent,
        }
    }
}

/// Parts of what a lender has, as regions of it.
struct Lent<'a> {
    uses: &'a [Use],
    held: &'a [Option<HeldGuard>],
}

impl<'a> Lent<'a> {
    fn line(&self, part: &Use) -> Region<'a, u64> {
        let (lender, Some(HeldGuard::Lends(lend))) = (&self.uses[part.of], &self.held[part.of])
        else {
            unreachable!("a lend of the line is kept while children use it");
        };
        let first = lender.cols.start;
        lend.region(part.cols.start - first..part.cols.end - first)
    }

    fn matrix(&self, part: &Use) -> Region<'a, u64, Ix2> {
        let (lender, Some(HeldGuard::MatrixLends(lend))) =
            (&self.uses[part.of], &self.held[part.of])
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
    if let Some(joins) = task.habits.joins {
        return joined::spawn(builder, (task, joins), line, matrix, run);
    }
    let task = Arc::clone(task);
    builder
        .input(of(false, false, false).map(&line))
        .inout(of(false, true, false).map(&line))
        .weak_input(of(false, false, true).map(&line))
        .weak_inout(of(false, true, true).map(&line))
        .input(of(true, false, false).map(&matrix))
        .inout(of(true, true, false).map(&matrix))
        .weak_input(of(true, false, true).map(&matrix))
        .weak_inout(of(true, true, true).map(&matrix))
        .spawn_async({
            let run = run.clone();
            move |a, b, c, d, e, f, g, h| {
                let (mut a, mut b) =
                    (a.into_iter().map(HeldGuard::Reads), b.into_iter().map(HeldGuard::Writes));
                let mut c = c.into_iter().map(HeldGuard::Lends);
                let mut d = d.into_iter().map(HeldGuard::Lends);
                let mut e = e.into_iter().map(HeldGuard::MatrixReads);
                let mut f = f.into_iter().map(HeldGuard::MatrixWrites);
                let mut g = g.into_iter().map(HeldGuard::MatrixLends);
                let mut h = h.into_iter().map(HeldGuard::MatrixLends);
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
                let held: Vec<Option<HeldGuard>> = held.collect();
                body(task, held, run)
            }
        })
        .unwrap();
}

async fn body(task: Arc<Task>, mut held: Vec<Option<HeldGuard>>, run: Run) {
    run.begin(&task);
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
    let mut held: Vec<Option<HeldGuard>> =
        held.into_iter().map(|held| held.map(HeldGuard::lend)).collect();
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
        assert!(waited.is_ok() || run.is_rough());
    }
    let Some(access) = task.has_back() else {
        return;
    };
    let index = task.uses.iter().position(|u| std::ptr::eq(u, access)).unwrap();
    let back = children.task("back");
    match &held[index] {
        Some(HeldGuard::Lends(lend)) => {
            let back = back.inout(&lend.all()).run(|all| all).unwrap();
            let mut all = match back.await {
                Err(_) if run.is_rough() => return,
                all => all.unwrap(),
            };
            all.iter_mut().for_each(|cell| *cell = mix(task.number, *cell));
        }
        Some(HeldGuard::MatrixLends(lend)) => {
            let back = back.inout(&lend.all()).run(|all| all).unwrap();
            let mut all = match back.await {
                Err(_) if run.is_rough() => return,
                all => all.unwrap(),
            };
            all.view_mut().iter_mut().for_each(|cell| *cell = mix(task.number, *cell));
        }
        _ => unreachable!("everything was lent"),
    }
}

/// The arrays that tasks work on.
struct Arrays {
    line: Array<u64>,
    matrix: Matrix<u64>,
}

impl Arrays {
    fn new(runtime: &Runtime, case: &Case) -> Self {
        Arrays {
            line: Array::new(runtime, vec![0; LEN], case.tile).unwrap(),
            matrix: Matrix::new(runtime, vec![0; ROWS * COLS], COLS, case.tiling).unwrap(),
        }
    }

    /// Spawns the roots, and after the first of them replays some steps.
    fn grow(&self, runtime: &Runtime, roots: &[Arc<Task>], replayed: usize, run: &Run) {
        let Arrays { line, matrix } = self;
        for (nth, root) in roots.iter().enumerate() {
            let in_line = |u: &Use| line.region(u.cols.clone());
            let in_matrix = |u: &Use| matrix.region(u.rows.clone(), u.cols.clone());
            spawn(runtime.task("root"), root, in_line, in_matrix, run);
            if nth == 0 {
                let declared = runtime.iterate::<Error>(replayed, |iteration| {
                    (0..line.tiles()).try_for_each(|tile| {
                        let task = iteration.task("replayed").inout(&line.tile(tile));
                        task.spawn(|mut cells| {
                            let step = current_step().unwrap();
                            cells.iter_mut().for_each(|cell| *cell = mix(step as u64, *cell));
                        })
                    })
                });
                declared.unwrap();
            }
        }
    }

    fn clear(&self, runtime: &Runtime) {
        let task = runtime.task("clear").output(&self.line.all()).output(&self.matrix.all());
        task.spawn(|mut line, mut matrix| {
            line.fill(0);
            matrix.view_mut().fill(0);
        })
        .unwrap();
    }

    fn read_all(&self, runtime: &Runtime, run: &Run) -> Outcome {
        let task = runtime.task("read all").input(&self.line.all()).input(&self.matrix.all());
        let seen = task.run(|line, matrix| {
            (
                line.iter().copied().map(Some).collect(),
                matrix.view().iter().copied().map(Some).collect(),
            )
        });
        let (line, matrix) = runtime.block_on(seen.unwrap()).unwrap().unwrap();
        Outcome { line, matrix, ran: run.ran.take().into_iter().collect() }
    }
}

/// Compares a run on the workers with one after another, after one that was cancelled at a task if
/// there is one.
fn check(
    case: &Case,
    with_failures: bool,
    cancels: Option<prop::sample::Index>,
) -> Result<(), TestCaseError> {
    common::quiet_panics();
    let _watchdog = common::watchdog();
    let run = Run { with_failures, cancels: None, ran: Log::new() };
    let mut next = 1;
    let settle = |root| settle(root, &everything(), !with_failures, &mut next);
    let roots: Vec<_> = case.roots.iter().map(settle).collect();
    let mut expected = Outcome {
        line: vec![Some(0); LEN],
        matrix: vec![Some(0); ROWS * COLS],
        ran: BTreeSet::new(),
    };
    for (nth, root) in roots.iter().enumerate() {
        expected.run(root, &run);
        expected.replay(if nth == 0 { case.replayed } else { 0 });
    }
    let runtime = common::runtime(case.workers);
    let arrays = Arrays::new(&runtime, case);
    if let Some(at) = cancels {
        let at = 1 + at.index(next as usize - 1) as u64;
        let run = Run { cancels: Some((at, (*runtime).clone())), ..run.clone() };
        arrays.grow(&runtime, &roots, case.replayed, &run);
        let waited = runtime.wait_blocking();
        prop_assert!(matches!(waited, Err(Error::Cancelled { .. })), "{waited:?}");
        run.ran.take();
        arrays.clear(&runtime);
    }
    arrays.grow(&runtime, &roots, case.replayed, &run);
    let waited = runtime.wait_blocking();
    prop_assert!(waited.is_ok() || with_failures, "{waited:?}");
    let mut seen = arrays.read_all(&runtime, &run);
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
        check(&case, false, None)?;
    }

    #[test]
    fn a_tree_with_failures_runs_and_poisons_what_its_depth_first_run_does(case in case()) {
        check(&case, true, None)?;
    }
    #[test]
    fn a_tree_that_is_cancelled_leaves_nothing_behind(
        case in case(),
        at in any::<prop::sample::Index>(),
    ) {
        check(&case, false, Some(at))?;
    }
}
