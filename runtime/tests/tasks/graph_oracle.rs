//! The dependencies of a random program are those that an examination of every single element
//! gives.
//!
//! The tasks use parts of a matrix in every mode, and some have children that use parts of theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proptest::prelude::*;
use talpf_runtime::operator::{Max, Sum};
use talpf_runtime::{
    Children, Config, GraphRecorder, Group, Ix2, Lend, Matrix, Region, Runtime, TaskBuilder,
    TaskGraph, Tiling, Waits,
};

use crate::common;

const ROWS: usize = 4;
const COLS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    In,
    Out,
    InOut,
    Concurrent,
    Commutative,
    Sum,
    Max,
}

use Mode::{Commutative, Concurrent, In, InOut, Out};

#[derive(Clone, Debug)]
struct Use {
    rows: Range<usize>,
    cols: Range<usize>,
    mode: Mode,
}

/// A task with children has one access, which it lends them.
#[derive(Clone, Debug)]
struct Task {
    uses: Vec<Use>,
    weak: bool,
    children: Vec<Vec<Use>>,
}

#[derive(Clone, Debug)]
struct Program {
    tiling: Tiling,
    workers: usize,
    tasks: Vec<Task>,
}

fn part(len: usize) -> impl Strategy<Value = Range<usize>> {
    (0..len, 0..=len).prop_map(move |(start, length)| start..(start + length).min(len))
}

fn single_use() -> impl Strategy<Value = Use> {
    let mode = prop_oneof![
        3 => Just(In),
        1 => Just(Out),
        2 => Just(InOut),
        1 => Just(Concurrent),
        1 => Just(Commutative),
        2 => Just(Mode::Sum),
        1 => Just(Mode::Max),
    ];
    // Whole rows now and then, so that reductions are joined.
    let cols = prop_oneof![1 => Just(0..COLS), 2 => part(COLS)];
    (part(ROWS), cols, mode).prop_map(|(rows, cols, mode)| Use { rows, cols, mode })
}

/// Accesses of one task: those that would exclude an earlier one are left out.
fn uses() -> impl Strategy<Value = Vec<Use>> {
    prop::collection::vec(single_use(), 0..4).prop_map(|uses| {
        let mut kept: Vec<Use> = Vec::new();
        for new in uses {
            let excludes = |old: &Use| {
                let compatible = old.mode == new.mode && matches!(new.mode, In | Concurrent);
                !compatible && old.cells().any(|cell| new.cells().any(|other| other == cell))
            };
            if !kept.iter().any(excludes) {
                kept.push(new);
            }
        }
        kept
    })
}

fn task() -> impl Strategy<Value = Task> {
    let flat = uses().prop_map(|uses| Task { uses, weak: false, children: Vec::new() });
    let children = prop::collection::vec(uses(), 1..5);
    let nested = (any::<bool>(), children).prop_map(|(weak, children)| Task {
        uses: vec![Use { rows: 0..ROWS, cols: 0..COLS, mode: InOut }],
        weak,
        children,
    });
    prop_oneof![4 => flat, 1 => nested]
}

fn program() -> impl Strategy<Value = Program> {
    let tiling = (1..=ROWS, 1..=COLS, 0..3usize, 0..3usize).prop_map(
        |(rows, cols, first_rows, first_cols)| {
            Tiling::new(rows, cols).first(first_rows, first_cols)
        },
    );
    let workers = prop_oneof![Just(1usize), Just(2), Just(8)];
    (tiling, workers, prop::collection::vec(task(), 1..25))
        .prop_map(|(tiling, workers, tasks)| Program { tiling, workers, tasks })
}

impl Use {
    fn cells(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let cols = self.cols.clone();
        self.rows.clone().flat_map(move |row| cols.clone().map(move |col| (row, col)))
    }

    fn is_reduction(&self) -> bool {
        matches!(self.mode, Mode::Sum | Mode::Max)
    }

    fn joins(&self, other: &Use) -> bool {
        self.is_reduction()
            && (&self.rows, &self.cols, self.mode) == (&other.rows, &other.cols, other.mode)
    }
}

/// Returns `true` if use `first` of task `one` and use `second` of a later one keep their order
/// where they meet.
fn are_ordered(
    tasks: &[&[Use]],
    (one, first): (usize, &Use),
    (other, second): (usize, &Use),
) -> bool {
    if first.joins(second) {
        let between = tasks[one + 1..other].iter().flat_map(|uses| uses.iter());
        let meets = |used: &Use| used.cells().any(|cell| first.cells().any(|own| own == cell));
        return between.filter(|used| !used.joins(first)).any(meets);
    }
    first.mode != second.mode || !matches!(first.mode, In | Concurrent | Commutative)
}

/// Pairs of tasks, spawned one after another, of which the later one waits for the earlier one.
fn direct(tasks: &[&[Use]]) -> BTreeSet<(usize, usize)> {
    let mut found = BTreeSet::new();
    for cell in (0..ROWS).flat_map(|row| (0..COLS).map(move |col| (row, col))) {
        let users: Vec<(usize, &Use)> = (tasks.iter().enumerate())
            .flat_map(|(task, uses)| uses.iter().map(move |used| (task, used)))
            .filter(|(_, used)| used.cells().any(|own| own == cell))
            .collect();
        for &later in &users {
            for &earlier in users.iter().filter(|earlier| earlier.0 < later.0) {
                let stands_between = |&(task, used): &(usize, &Use)| {
                    earlier.0 < task
                        && task < later.0
                        && are_ordered(tasks, earlier, (task, used))
                        && are_ordered(tasks, (task, used), later)
                };
                if are_ordered(tasks, earlier, later) && !users.iter().any(stands_between) {
                    found.insert((earlier.0, later.0));
                }
            }
        }
    }
    found
}

/// The parent of two tasks, their numbers among its children, and whether only children wait.
type Found = BTreeSet<(Option<usize>, usize, usize, bool)>;

fn expected(program: &Program) -> Found {
    let top: Vec<&[Use]> = program.tasks.iter().map(|task| &task.uses[..]).collect();
    let is_weak = |task: usize| program.tasks[task].weak;
    let mut found: Found =
        direct(&top).into_iter().map(|(from, to)| (None, from, to, is_weak(to))).collect();
    for (parent, task) in program.tasks.iter().enumerate() {
        let children: Vec<&[Use]> = task.children.iter().map(|uses| &uses[..]).collect();
        found.extend(direct(&children).iter().map(|&(from, to)| (Some(parent), from, to, false)));
    }
    found
}

/// Returns the dependencies of a graph, whose tasks are recorded in the order of their spawns at
/// every level.
fn found(graph: &TaskGraph) -> Found {
    let mut next: BTreeMap<Option<usize>, usize> = BTreeMap::new();
    let mut numbers = Vec::new();
    for task in graph.tasks() {
        let next = next.entry(task.parent).or_default();
        numbers.push(*next);
        *next += 1;
    }
    let of = |edge: &talpf_runtime::Dependency| {
        let parent = graph.tasks()[edge.from].parent;
        assert_eq!(graph.tasks()[edge.to].parent, parent);
        assert_ne!(edge.waits, Waits::NextIteration);
        let parent = parent.map(|parent| numbers[parent]);
        (parent, numbers[edge.from], numbers[edge.to], edge.waits == Waits::Children)
    };
    graph.dependencies().iter().map(of).collect()
}

/// Spawns a task with `uses` of what `region` cuts.
fn spawn<'r>(task: TaskBuilder<'_>, uses: &[Use], region: impl Fn(&Use) -> Region<'r, u64, Ix2>) {
    let of = |mode| uses.iter().filter(move |used| used.mode == mode).map(&region);
    let task = task.input(of(In)).output(of(Out)).inout(of(InOut));
    let task = task.concurrent(of(Concurrent)).commutative(of(Commutative));
    let task = task.reduction(of(Mode::Sum), Sum).reduction(of(Mode::Max), Max);
    task.spawn(|_, _, _, _, _, _, _| ()).unwrap();
}

fn spawn_children(children: &[Vec<Use>], all: &Lend<u64, Ix2>) {
    let nest = Children::of_current_task().unwrap();
    for uses in children {
        spawn(nest.task("child"), uses, |used| all.region(used.rows.clone(), used.cols.clone()));
    }
}

fn spawn_all(program: &Program, group: &Group) {
    let values = vec![0u64; ROWS * COLS];
    let matrix = Matrix::new(group, values, COLS, program.tiling).unwrap();
    let region = |used: &Use| matrix.region(used.rows.clone(), used.cols.clone());
    for Task { uses, weak, children } in program.tasks.clone() {
        let task = group.task("task");
        if children.is_empty() {
            spawn(task, &uses, region);
        } else if weak {
            let task = task.weak_inout(&region(&uses[0]));
            task.spawn(move |all| spawn_children(&children, &all)).unwrap();
        } else {
            let task = task.inout(&region(&uses[0]));
            task.spawn(move |all| spawn_children(&children, &all.lend())).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn dependencies_of_a_random_program_are_those_of_its_elements(program in program()) {
        let _watchdog = common::watchdog();
        let recorder = GraphRecorder::new(usize::MAX);
        let graph = Some(recorder.clone());
        let config = Config { workers: program.workers, graph, ..Config::default() };
        let runtime = Runtime::new(config).unwrap();
        spawn_all(&program, &runtime);
        runtime.shut_down().unwrap();
        prop_assert_eq!(found(&recorder.graph()), expected(&program));
    }
}
