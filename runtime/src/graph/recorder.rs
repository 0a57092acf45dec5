//! Recording of tasks as they are spawned.
//!
//! A spawn holds one lock while it registers the accesses: so the order of the records is the order
//! of registration, in every group. The lock is taken before those of groups.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use talpf_primitives::Mutex;
use talpf_traces::counted;

use super::{Dependency, GraphTask, Outcome, RecordedAccess, TaskGraph, Waits, dependencies};
use crate::data::Mode;
use crate::dependency::{Clauses, Declared, Registered};
use crate::error::Failure;
use crate::record::{GroupHead, Record, RecordId, Role, record};

/// A recorder of the graph of all runtimes that have it in their [`Config`](crate::Config). Clones
/// are handles of the same recorder.
///
/// ```
/// use talpf_runtime::{Array, Config, GraphRecorder, Runtime};
///
/// let graph = GraphRecorder::new(1000);
/// let runtime = Runtime::new(Config { graph: Some(graph.clone()), ..Config::default() })?;
/// let cells = Array::new(&runtime, vec![0u64; 8], 4)?;
/// runtime.task("fill").output(&cells.all()).spawn(|mut cells| cells.fill(1))?;
/// for tile in 0..cells.tiles() {
///     runtime.task("double").inout(&cells.tile(tile)).spawn(|mut tile| tile[0] *= 2)?;
/// }
/// runtime.shut_down()?;
/// let graph = graph.graph();
/// assert_eq!((graph.tasks().len(), graph.dependencies().len()), (3, 2));
/// assert!(graph.to_svg().starts_with("<svg"));
/// # Ok::<(), talpf_runtime::Error>(())
/// ```
///
/// **Cost**: spawns of all threads go one after another, and every task up to the limit is kept.
#[derive(Clone)]
pub struct GraphRecorder {
    notes: Arc<Mutex<Notes>>,
}

struct Notes {
    limit: usize,
    spawned: u64,
    tasks: Vec<GraphTask>,
    /// Dependencies of iterated graphs.
    dependencies: Vec<Dependency>,
    /// Index of each task, by its number.
    indices: HashMap<u64, usize>,
}

impl GraphRecorder {
    /// Creates a recorder of the first `limit` tasks.
    pub fn new(limit: usize) -> Self {
        let notes = Notes {
            limit,
            spawned: 0,
            tasks: Vec::new(),
            dependencies: Vec::new(),
            indices: HashMap::new(),
        };
        GraphRecorder { notes: Arc::new(Mutex::new(notes)) }
    }

    /// Returns the graph so far.
    ///
    /// **Cost**: compares every access with those of the same array that are not overwritten.
    pub fn graph(&self) -> TaskGraph {
        let notes = self.notes.lock();
        let (tasks, spawned) = (notes.tasks.clone(), notes.spawned);
        let mut dependencies = notes.dependencies.clone();
        drop(notes);
        dependencies.extend(dependencies::among(&tasks));
        dependencies.sort_unstable();
        TaskGraph { tasks, dependencies, spawned }
    }

    /// Records the task of `group` that `register` registers, a child of `parent`, unless it is
    /// refused.
    #[cold]
    pub(crate) fn note(
        &self,
        id: RecordId,
        group: &GroupHead,
        parent: Option<RecordId>,
        clauses: &dyn Clauses<'_>,
        register: &mut dyn FnMut() -> Registered,
    ) -> Registered {
        let mut notes = self.notes.lock();
        let registered = register();
        let new = record(id);
        if new.role() == Role::Member && registered.overlap.is_none() {
            let mut uses = Vec::with_capacity(clauses.count());
            clauses.visit(&mut |declared| {
                let operator = clauses.joins(uses.len()).map(|joins| joins.operator());
                uses.push(RecordedAccess::new(declared, operator));
            });
            let parent = parent.and_then(|parent| notes.index_of(record(parent)));
            notes.add(new, parent, group.name(), uses);
        }
        registered
    }

    /// Records the tasks of a graph that the running task `holder`, of `group`, iterates. Edges are
    /// pairs of indices in `tasks`.
    #[cold]
    pub(crate) fn note_iteration(
        &self,
        holder: RecordId,
        group: &GroupHead,
        tasks: impl Iterator<Item = &'static Record>,
        edges: impl Iterator<Item = (usize, usize)>,
        steps: usize,
    ) {
        let mut notes = self.notes.lock();
        let parent = notes.index_of(record(holder));
        if let Some(parent) = parent {
            notes.tasks[parent].steps = Some(steps);
        }
        let first = notes.tasks.len();
        tasks.for_each(|task| notes.add(task, parent, group.name(), Vec::new()));
        let end = notes.tasks.len();
        let edges = edges.map(|(from, to)| (first + from, first + to));
        let noted = edges.filter(|&(from, to)| from.max(to) < end).map(|(from, to)| {
            let waits = if from < to { Waits::Body } else { Waits::NextIteration };
            Dependency { from, to, waits }
        });
        notes.dependencies.extend(noted);
    }

    /// Records the failure of a complete task.
    #[cold]
    pub(crate) fn note_failure(&self, task: &Record, failure: &Failure) {
        let mut notes = self.notes.lock();
        if let Some(index) = notes.index_of(task) {
            notes.tasks[index].outcome = match failure {
                Failure { upstream: Some(_), .. } => Outcome::NotRun,
                Failure { cancelled: true, .. } => Outcome::Cancelled,
                _ => Outcome::Failed,
            };
        }
    }
}

impl Notes {
    fn index_of(&self, task: &Record) -> Option<usize> {
        self.indices.get(&task.number(task.owner())).copied()
    }

    fn add(
        &mut self,
        task: &Record,
        parent: Option<usize>,
        group: &str,
        uses: Vec<RecordedAccess>,
    ) {
        self.spawned += 1;
        if self.tasks.len() >= self.limit {
            return;
        }
        let known =
            self.tasks.iter().rev().map(|task| &task.group).find(|known| ***known == *group);
        let group = known.map_or_else(|| Arc::from(group), Arc::clone);
        self.indices.insert(task.number(task.owner()), self.tasks.len());
        let label = task.label().text();
        let (steps, outcome) = (None, Outcome::Fine);
        let communicates = task.marks().communicates();
        self.tasks.push(GraphTask { label, group, parent, steps, communicates, outcome, uses });
    }
}

impl RecordedAccess {
    fn new(declared: &Declared<'_>, operator: Option<TypeId>) -> Self {
        RecordedAccess {
            array: declared.core().label(),
            rect: declared.rect(),
            mode: declared.mode(),
            is_weak: declared.is_weak(),
            operator: operator.filter(|_| declared.mode() == Mode::Reduction),
        }
    }
}

impl fmt::Debug for GraphRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let notes = self.notes.lock();
        write!(f, "GraphRecorder ({} of {})", notes.tasks.len(), counted(notes.limit, "task"))
    }
}
