//! Any schedule of a random graph gives the same bytes as running its tasks one after another.
//!
//! The tasks of a graph belong to two groups, each with an array of its own, and are spawned from
//! outside or from a task. Their bodies are closures or async, queued or inline, and may release
//! the regions that they have read before they write. `TALPF_GRAPHS` sets the number of graphs.

use proptest::prelude::*;
use talpf_runtime::{Array, Config, Group, In, InOut, Ix2, Matrix, Out, Runtime, Tiling};

const LEN: usize = 24;
const ROWS: usize = 6;
const COLS: usize = 7;

/// An access: its array, its part, and `true` if it writes.
#[derive(Clone, Copy, Debug)]
struct Use {
    matrix: bool,
    rows: (usize, usize),
    cols: (usize, usize),
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    In,
    Out,
    InOut,
}

#[derive(Clone, Debug)]
struct Task {
    uses: Vec<Use>,
    group: usize,
    priority: i32,
    inline: bool,
    /// Number of awaits of the body between reading and writing; a closure if 0.
    awaits: usize,
    /// `true` if the body drops its reading guards before it writes.
    drops_early: bool,
}

#[derive(Clone, Debug)]
struct Graph {
    tile: usize,
    tiling: Tiling,
    workers: usize,
    /// `true` if a task spawns the others, with a short queue.
    from_inside: bool,
    tasks: Vec<Task>,
}

/// Generates a range that is empty now and then.
fn part(len: usize) -> impl Strategy<Value = (usize, usize)> {
    (0..len, 0..=len).prop_map(move |(start, length)| (start, (start + length).min(len)))
}

fn single_use() -> impl Strategy<Value = Use> {
    let mode = prop_oneof![3 => Just(Mode::In), 1 => Just(Mode::Out), 1 => Just(Mode::InOut)];
    (any::<bool>(), part(ROWS), part(COLS), part(LEN), mode).prop_map(
        |(matrix, rows, cols, line, mode)| match matrix {
            true => Use { matrix, rows, cols, mode },
            false => Use { matrix, rows: (0, 1), cols: line, mode },
        },
    )
}

/// Accesses of one task: those that would conflict with an earlier one are left out.
fn uses() -> impl Strategy<Value = Vec<Use>> {
    prop::collection::vec(single_use(), 0..5).prop_map(|uses| {
        let mut kept: Vec<Use> = Vec::new();
        for new in uses {
            let conflicts = |old: &Use| {
                let meet = |a: (usize, usize), b: (usize, usize)| a.0 < b.1 && b.0 < a.1;
                old.matrix == new.matrix
                    && (old.mode != Mode::In || new.mode != Mode::In)
                    && meet(old.rows, new.rows)
                    && meet(old.cols, new.cols)
            };
            if !kept.iter().any(conflicts) {
                kept.push(new);
            }
        }
        kept
    })
}

fn task() -> impl Strategy<Value = Task> {
    let priority = prop_oneof![3 => Just(0), 1 => -2..3i32];
    let awaits = prop_oneof![2 => Just(0usize), 1 => 1..3usize];
    (uses(), 0..2usize, priority, any::<bool>(), awaits, any::<bool>()).prop_map(
        |(uses, group, priority, inline, awaits, drops_early)| Task {
            uses,
            group,
            priority,
            inline,
            awaits,
            drops_early,
        },
    )
}

fn graph() -> impl Strategy<Value = Graph> {
    let tiling = (1..=ROWS, 1..=COLS, 0..3usize, 0..3usize).prop_map(
        |(rows, cols, first_rows, first_cols)| {
            Tiling::new(rows, cols).first(first_rows, first_cols)
        },
    );
    let workers = prop_oneof![Just(1usize), Just(2), Just(8)];
    let tasks = prop::collection::vec(task(), 1..60);
    (1..=LEN, tiling, workers, any::<bool>(), tasks).prop_map(
        |(tile, tiling, workers, from_inside, tasks)| Graph {
            tile,
            tiling,
            workers,
            from_inside,
            tasks,
        },
    )
}

/// Does the work of a task on the elements that it reads and writes, in order.
fn mix(seed: u64, value: u64) -> u64 {
    (seed ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

fn serial(graph: &Graph) -> (Vec<u64>, Vec<u64>) {
    let mut line = vec![0u64; LEN];
    let mut matrix = vec![0u64; ROWS * COLS];
    for (number, task) in graph.tasks.iter().enumerate() {
        let mut seed = number as u64 + 1;
        let cells = |u: &Use| -> Vec<usize> {
            let width = if u.matrix { COLS } else { LEN };
            (u.rows.0..u.rows.1)
                .flat_map(|row| (u.cols.0..u.cols.1).map(move |col| row * width + col))
                .collect()
        };
        for access in task.uses.iter().filter(|u| u.mode != Mode::Out) {
            let from = if access.matrix { &matrix } else { &line };
            cells(access).iter().for_each(|&cell| seed = mix(seed, from[cell]));
        }
        for access in task.uses.iter().filter(|u| u.mode != Mode::In) {
            for cell in cells(access) {
                seed = mix(seed, cell as u64);
                if access.matrix { matrix[cell] = seed } else { line[cell] = seed }
            }
        }
    }
    (line, matrix)
}

/// Guards of the line and of the matrix, each in the order of the uses.
struct Guards {
    reads: (Vec<In<u64>>, Vec<In<u64, Ix2>>),
    writes: (Vec<Out<u64>>, Vec<Out<u64, Ix2>>),
    changes: (Vec<InOut<u64>>, Vec<InOut<u64, Ix2>>),
}

/// Returns the uses of a body in order, each with its position among those of its kind.
fn placed(uses: &[Use], without: Mode) -> impl Iterator<Item = (&Use, usize)> {
    let kind = |u: &Use| usize::from(u.matrix) * 3 + u.mode as usize;
    let mut next = [0usize; 6];
    let mut place = move |u: &Use| {
        next[kind(u)] += 1;
        next[kind(u)] - 1
    };
    uses.iter().map(move |u| (u, place(u))).filter(move |(u, _)| u.mode != without)
}

impl Guards {
    fn read(&self, uses: &[Use], mut seed: u64) -> u64 {
        let mut eat = |value: &u64| seed = mix(seed, *value);
        for (access, at) in placed(uses, Mode::Out) {
            match (access.matrix, access.mode) {
                (false, Mode::In) => self.reads.0[at].iter().for_each(&mut eat),
                (false, _) => self.changes.0[at].iter().for_each(&mut eat),
                (true, Mode::In) => self.reads.1[at].view().iter().for_each(&mut eat),
                (true, _) => self.changes.1[at].view().iter().for_each(&mut eat),
            }
        }
        seed
    }

    fn write(&mut self, uses: &[Use], mut seed: u64) {
        for (access, at) in placed(uses, Mode::In) {
            let width = if access.matrix { COLS } else { LEN };
            for row in access.rows.0..access.rows.1 {
                let cells = match (access.matrix, access.mode) {
                    (false, Mode::Out) => &mut self.writes.0[at][..],
                    (false, _) => &mut self.changes.0[at][..],
                    (true, Mode::Out) => self.writes.1[at].row_mut(row - access.rows.0),
                    (true, _) => self.changes.1[at].row_mut(row - access.rows.0),
                };
                for (cell, col) in cells.iter_mut().zip(access.cols.0..access.cols.1) {
                    seed = mix(seed, (row * width + col) as u64);
                    *cell = seed;
                }
            }
        }
    }

    fn drop_reads(&mut self) {
        self.reads = Default::default();
    }
}

fn spawn(graph: &Graph, groups: &[Group; 2], line: &Array<u64>, matrix: &Matrix<u64>) {
    for (number, task) in graph.tasks.iter().enumerate() {
        let Task { uses, group, priority, inline, awaits, drops_early } = task.clone();
        let of = |matrix: bool, mode: Mode| {
            task.uses.iter().filter(move |u| u.matrix == matrix && u.mode == mode)
        };
        let in_line = |u: &Use| line.region(u.cols.0..u.cols.1);
        let in_matrix = |u: &Use| matrix.region(u.rows.0..u.rows.1, u.cols.0..u.cols.1);
        let task = groups[group].task("mix").priority(priority);
        let task = if inline { task.inline() } else { task };
        let task = task
            .input(of(false, Mode::In).map(in_line))
            .output(of(false, Mode::Out).map(in_line))
            .inout(of(false, Mode::InOut).map(in_line))
            .input(of(true, Mode::In).map(in_matrix))
            .output(of(true, Mode::Out).map(in_matrix))
            .inout(of(true, Mode::InOut).map(in_matrix));
        let first = move |guards: &mut Guards, uses: &[Use]| {
            let seed = guards.read(uses, number as u64 + 1);
            if drops_early {
                guards.drop_reads();
            }
            seed
        };
        let spawned = if awaits == 0 {
            task.spawn(move |a, b, c, d, e, f| {
                let mut guards = Guards { reads: (a, d), writes: (b, e), changes: (c, f) };
                let seed = first(&mut guards, &uses);
                guards.write(&uses, seed);
            })
        } else {
            task.spawn_async(move |a, b, c, d, e, f| async move {
                let mut guards = Guards { reads: (a, d), writes: (b, e), changes: (c, f) };
                let seed = first(&mut guards, &uses);
                for _ in 0..awaits {
                    tokio::task::yield_now().await;
                }
                guards.write(&uses, seed);
            })
        };
        spawned.unwrap();
    }
}

fn parallel(graph: &Graph) -> (Vec<u64>, Vec<u64>) {
    let throttle = if graph.from_inside { 4 } else { 256 };
    let config = Config { workers: graph.workers, throttle, ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    let groups = [runtime.group("line", 1), runtime.group("matrix", 2)];
    let line = Array::new(&groups[0], vec![0u64; LEN], graph.tile).unwrap();
    let matrix = Matrix::new(&groups[1], vec![0u64; ROWS * COLS], COLS, graph.tiling).unwrap();
    if graph.from_inside {
        let (graph, groups) = (graph.clone(), groups.clone());
        let (line, matrix) = (line.clone(), matrix.clone());
        let spawner = runtime.task("spawner").run(move || spawn(&graph, &groups, &line, &matrix));
        runtime.block_on(spawner.unwrap()).unwrap().unwrap();
    } else {
        spawn(graph, &groups, &line, &matrix);
    }
    let line = runtime.task("read").input(&line.all()).run(|line| line.to_vec()).unwrap();
    let matrix = runtime.task("read").input(&matrix.all());
    let matrix = matrix.run(|matrix| matrix.view().iter().copied().collect()).unwrap();
    let line = runtime.block_on(line).unwrap().unwrap();
    let matrix = runtime.block_on(matrix).unwrap().unwrap();
    runtime.shut_down().unwrap();
    (line, matrix)
}

fn graphs() -> u32 {
    std::env::var("TALPF_GRAPHS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(graphs()))]

    #[test]
    fn a_random_graph_equals_the_serial_order(graph in graph()) {
        prop_assert_eq!(parallel(&graph), serial(&graph));
    }
}
