//! Graph known in advance, for peers without dependences: every task counts the tasks it waits for,
//! and the thread that brings a count to zero may start that task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::Graph;
use super::graph::checksum;
use super::work::{Cell, Work};

/// Edges of a graph. The number of a task is `step * width + point`.
#[derive(Debug)]
pub(super) struct Edges {
    graph: Arc<Graph>,
    /// Number of predecessors of each task.
    predecessors: Vec<u32>,
    /// Index in `successors` of the first successor of each task; the last entry is the end.
    starts: Vec<usize>,
    successors: Vec<usize>,
}

/// State of one run of a graph.
pub(super) struct Countdown {
    edges: Arc<Edges>,
    work: Work,
    /// Number of predecessors of each task that have not finished.
    missing: Vec<AtomicU32>,
    /// Number of tasks that have not finished.
    left: AtomicUsize,
    /// Cells, each written by the one task that its edges allow; the counts order the writes.
    rows: [Vec<Cell<AtomicU64>>; 2],
}

impl Edges {
    /// Finds the edges by tracking the last writer of each cell and its readers since. A task waits
    /// for the writers of the cells it reads, and for the writer and the readers of the cell it
    /// writes.
    pub(super) fn new(graph: &Arc<Graph>) -> Self {
        let width = graph.width();
        let mut users: [Vec<Vec<usize>>; 2] = [vec![Vec::new(); width], vec![Vec::new(); width]];
        let mut before = vec![Vec::new(); width * graph.steps()];
        for step in 0..graph.steps() {
            for point in graph.points(step) {
                let task = step * width + point;
                for input in graph.dependences(step, point) {
                    let users = &mut users[(step + 1) % 2][*input];
                    before[task].extend(users.first());
                    users.push(task);
                }
            }
            for point in graph.points(step) {
                let task = step * width + point;
                before[task].append(&mut users[step % 2][point]);
                users[step % 2][point].push(task);
            }
        }
        let mut after = vec![Vec::new(); before.len()];
        for (task, before) in before.iter_mut().enumerate() {
            before.sort_unstable();
            before.dedup();
            before.iter().for_each(|earlier| after[*earlier].push(task));
        }
        let mut starts = vec![0];
        starts.extend(after.iter().scan(0, |end, list| {
            *end += list.len();
            Some(*end)
        }));
        let predecessors = before.iter().map(|before| before.len() as u32).collect();
        Edges { graph: Arc::clone(graph), predecessors, starts, successors: after.concat() }
    }
}

impl Countdown {
    pub(super) fn new(edges: &Arc<Edges>, work: &Work) -> Self {
        let row = || (0..edges.graph.width()).map(|_| Cell::default()).collect();
        Countdown {
            edges: Arc::clone(edges),
            work: work.clone(),
            missing: edges.predecessors.iter().copied().map(AtomicU32::new).collect(),
            left: AtomicUsize::new(edges.graph.tasks()),
            rows: [row(), row()],
        }
    }

    /// Returns the tasks without predecessors.
    pub(super) fn first(&self) -> impl Iterator<Item = usize> {
        let graph = &self.edges.graph;
        let tasks = (0..graph.steps()).flat_map(move |step| {
            graph.points(step).map(move |point| step * graph.width() + point)
        });
        tasks.filter(|task| self.edges.predecessors[*task] == 0)
    }

    /// Runs a task and calls `ready` for each successor that has no other unfinished predecessor.
    /// Returns `true` for the last task.
    pub(super) fn run(&self, task: usize, mut ready: impl FnMut(usize)) -> bool {
        let graph = &self.work.graph;
        let (step, point) = (task / graph.width(), task % graph.width());
        let [to, from] = [&self.rows[step % 2], &self.rows[(step + 1) % 2]];
        let inputs = graph.dependences(step, point).iter();
        let inputs = inputs.map(|input| from[*input].0.load(Ordering::Relaxed));
        let cell = to[point].0.load(Ordering::Relaxed);
        to[point].0.store(self.work.task(step, point).run(cell, inputs), Ordering::Relaxed);
        for later in &self.edges.successors[self.edges.starts[task]..self.edges.starts[task + 1]] {
            if self.missing[*later].fetch_sub(1, Ordering::AcqRel) == 1 {
                ready(*later);
            }
        }
        self.left.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns the checksum after all tasks have run.
    pub(super) fn checksum(&self) -> u64 {
        let row = |row: &Vec<Cell<AtomicU64>>| {
            row.iter().map(|cell| cell.0.load(Ordering::Acquire)).collect()
        };
        checksum(&[row(&self.rows[0]), row(&self.rows[1])])
    }
}
