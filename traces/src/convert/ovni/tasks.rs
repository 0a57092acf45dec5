//! Tasks of a trace in the terms of the nOS-V model.
//!
//! A task is created once for its process, with a new number, as those of ovni have 32 bits. Each slice
//! executes a *body* of it. A task with one slice is a normal one, which is executed and ends. So is one that
//! other tasks have interrupted where it ran, each of its slices coming back from the one that interrupted
//! it: it is paused and resumed between. nOS-V lets no body go on in another thread, or past one that was
//! paused later, as a task does here that has waited; such a task is a parallel one, and each slice a body
//! with the number of the slice, from 1.
//!
//! The trace does not say where a task has ended, so that a first pass over it counts its slices. A trace has
//! many tasks, most of them with one slice: of those their numbers and types are kept alone.

use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::paraver::{EventKind, Reader, Record};

const TASK_ID: u32 = EventKind::TaskId.number();
const TASK_TYPE: u32 = EventKind::TaskType.number();

/// Values of a row that say which task it shows; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Values {
    id: i64,
    kind: i64,
}

impl Values {
    /// Returns the task, if both values name one.
    fn task(self) -> Option<Self> {
        (self.id != 0 && self.kind != 0).then_some(self)
    }
}

/// Task that a row shows. Its values come in one line or in two, and a line may have those of several tasks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown {
    now: Values,
    /// Values that hold from `since_ns`, once both have come or it is known that one stays.
    next: Values,
    since_ns: u64,
    /// Values that have come and do not hold yet.
    has_id: bool,
    has_kind: bool,
}

/// Change of the task that a row shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) time_ns: u64,
    from: Option<Values>,
    to: Option<Values>,
}

impl Shown {
    /// Gives the change to `take` that an earlier time has left incomplete.
    pub(super) fn settle(
        &mut self,
        time_ns: u64,
        take: impl FnOnce(Change) -> Result<()>,
    ) -> Result<()> {
        if time_ns > self.since_ns { self.change().map_or(Ok(()), take) } else { Ok(()) }
    }

    /// Takes the values of a line, and gives each change to `take`.
    pub(super) fn event(
        &mut self,
        time_ns: u64,
        values: &[(u32, i64)],
        mut take: impl FnMut(Change) -> Result<()>,
    ) -> Result<()> {
        self.settle(time_ns, &mut take)?;
        self.since_ns = time_ns;
        for (kind, value) in values {
            let has_it = match *kind {
                TASK_ID => self.has_id,
                TASK_TYPE => self.has_kind,
                _ => continue,
            };
            if has_it {
                self.change().map_or(Ok(()), &mut take)?;
            }
            if *kind == TASK_ID {
                (self.next.id, self.has_id) = (*value, true);
            } else {
                (self.next.kind, self.has_kind) = (*value, true);
            }
            if self.has_id && self.has_kind {
                self.change().map_or(Ok(()), &mut take)?;
            }
        }
        Ok(())
    }

    /// Shows the values that have come, and returns the change if there is one.
    fn change(&mut self) -> Option<Change> {
        (self.has_id, self.has_kind) = (false, false);
        let before = std::mem::replace(&mut self.now, self.next);
        let (from, to) = (before.task(), self.now.task());
        (from != to).then_some(Change { time_ns: self.since_ns, from, to })
    }
}

/// Tasks of a rank. Their numbers in ovni count from 1 in the order in which they begin.
#[derive(Debug, Default)]
struct OfRank {
    /// Types of the tasks, by number.
    kinds: Vec<u32>,
    /// Tasks with several slices, by their numbers in the trace.
    several: HashMap<i64, Several>,
    /// Number of tasks that have begun in the second pass.
    begun: u32,
}

/// Task with several slices.
#[derive(Clone, Copy, Debug)]
struct Several {
    /// Number of the task in ovni.
    task: u32,
    /// Number of slices in the trace.
    slices: u32,
    /// Number of slices that have begun in the second pass.
    begun: u32,
    /// Each slice is a body of its own.
    is_parallel: bool,
}

/// Tasks of all ranks.
#[derive(Debug)]
pub(super) struct Tasks {
    of_ranks: Vec<OfRank>,
}

/// Number of a task in the trace, in two halves, so that 12 bytes hold it and that of ovni.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Id([u32; 2]);

impl Id {
    fn of(id: i64) -> Self {
        Self([id as u32, (id >> 32) as u32])
    }
}

/// Tasks of a rank as the first pass finds them.
#[derive(Debug, Default)]
struct Found {
    numbers: HashMap<Id, u32>,
    /// Row and index among its interrupted tasks of those that are interrupted, by number.
    interrupted: HashMap<u32, (usize, u64)>,
}

/// Row of a trace in the first pass.
#[derive(Clone, Debug, Default)]
struct Row {
    rank: u32,
    shown: Shown,
    /// Tasks that others have interrupted, by number; the last ones come back first.
    interrupted: VecDeque<u32>,
    /// Number of those that are forgotten, which lie before the others.
    forgotten: u64,
}

/// Most tasks that are interrupted on a row. One that comes back later counts as one that has waited.
const MOST_INTERRUPTED: usize = 1 << 16;

/// First pass over a trace: finds tasks and event types.
#[derive(Debug)]
pub(super) struct Survey {
    path: PathBuf,
    rows: Vec<Row>,
    tasks: Tasks,
    found: Vec<Found>,
    kinds: HashSet<u32>,
}

impl Survey {
    pub(super) fn new(reader: &Reader, prv: &Path) -> Self {
        let row = |rank: &u32| Row { rank: *rank, ..Row::default() };
        Self {
            path: prv.to_owned(),
            rows: reader.ranks_of_rows().iter().map(row).collect(),
            tasks: Tasks { of_ranks: (0..reader.ranks()).map(|_| OfRank::default()).collect() },
            found: (0..reader.ranks()).map(|_| Found::default()).collect(),
            kinds: HashSet::new(),
        }
    }

    /// Follows a record. Changes come in the order in which the second pass finds them.
    pub(super) fn record(&mut self, record: Record<'_>) -> Result<()> {
        match record {
            Record::State { row, begin_ns, .. } => self.settle(row, begin_ns),
            Record::Event { row, time_ns, values, .. } => {
                self.kinds.extend(values.iter().map(|(kind, _)| *kind));
                let mut shown = self.rows[row].shown;
                shown.event(time_ns, values, |change| self.count(row, change))?;
                self.rows[row].shown = shown;
                Ok(())
            }
            Record::Communication(_) => Ok(()),
        }
    }

    /// Returns the tasks, and all event types of the trace.
    pub(super) fn finish(mut self) -> Result<(Tasks, HashSet<u32>)> {
        (0..self.rows.len()).try_for_each(|row| self.settle(row, u64::MAX))?;
        let Self { path, tasks, kinds, .. } = self;
        if tasks.len() == 0 { Err(Error::NoTasks { path }) } else { Ok((tasks, kinds)) }
    }

    fn settle(&mut self, row: usize, time_ns: u64) -> Result<()> {
        let mut shown = self.rows[row].shown;
        shown.settle(time_ns, |change| self.count(row, change))?;
        self.rows[row].shown = shown;
        Ok(())
    }

    /// Counts the slice that begins with a change on a row.
    fn count(&mut self, row: usize, Change { from, to, .. }: Change) -> Result<()> {
        let rank = self.rows[row].rank;
        let found = &mut self.found[rank as usize];
        let (Some(from), Some(to)) = (from, to) else {
            self.rows[row].forget(row, found, 0);
            return to.map_or(Ok(()), |to| self.begin_slice(rank, to, false));
        };
        let number = |values: Values| found.numbers.get(&Id::of(values.id)).copied();
        let (from, coming) = (number(from), number(to));
        let of_row = &mut self.rows[row];
        let index = coming.and_then(|task| of_row.index_of(row, found, task));
        if let Some(index) = index {
            of_row.forget(row, found, index);
        } else if let Some(from) = from {
            of_row.interrupt(row, found, from);
        }
        self.begin_slice(rank, to, index.is_some())
    }

    /// Counts a slice of a task that begins, or that comes back from the one that has interrupted it.
    fn begin_slice(
        &mut self,
        rank: u32,
        Values { id, kind: number }: Values,
        comes_back: bool,
    ) -> Result<()> {
        let (path, what) = (&self.path, "task type");
        let too_large = |_| Error::OvniNumber { path: path.clone(), what, number };
        let kind = u32::try_from(number).map_err(too_large)?;
        let OfRank { kinds, several, .. } = &mut self.tasks.of_ranks[rank as usize];
        let new = kinds.len() as u32 + 1;
        let task = *self.found[rank as usize].numbers.entry(Id::of(id)).or_insert(new);
        if task == new {
            kinds.push(kind);
            return Ok(());
        }
        let before = kinds[task as usize - 1];
        if before != kind {
            let (path, types) = (path.clone(), [before, kind]);
            return Err(Error::TaskOfTwoTypes { path, rank, task: id, types });
        }
        let first = Several { task, slices: 1, begun: 0, is_parallel: false };
        let several = several.entry(id).or_insert(first);
        several.is_parallel |= !comes_back;
        several.slices = several.slices.saturating_add(1);
        Ok(())
    }
}

impl Row {
    /// Returns the index of a task among the interrupted ones of this row, if it is one.
    fn index_of(&self, row: usize, found: &Found, task: u32) -> Option<usize> {
        let (of, index) = *found.interrupted.get(&task)?;
        let index = usize::try_from(index.checked_sub(self.forgotten)?).ok()?;
        (of == row && self.interrupted.get(index) == Some(&task)).then_some(index)
    }

    fn interrupt(&mut self, row: usize, found: &mut Found, task: u32) {
        if self.interrupted.len() == MOST_INTERRUPTED {
            let first = self.interrupted.pop_front();
            first.into_iter().for_each(|task| found.forget(row, task));
            self.forgotten += 1;
        }
        let index = self.forgotten + self.interrupted.len() as u64;
        found.interrupted.insert(task, (row, index));
        self.interrupted.push_back(task);
    }

    /// Removes the interrupted tasks from an index on.
    fn forget(&mut self, row: usize, found: &mut Found, from: usize) {
        self.interrupted.drain(from..).for_each(|task| found.forget(row, task));
    }
}

impl Found {
    /// Removes a task from the interrupted ones, if it is one of this row.
    fn forget(&mut self, row: usize, task: u32) {
        if let Entry::Occupied(place) = self.interrupted.entry(task)
            && place.get().0 == row
        {
            place.remove();
        }
    }
}

/// Events of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Execute,
    Pause,
    Resume,
    End,
}

/// Body of a task in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Body {
    /// Number of the task in the trace.
    id: i64,
    /// Number of the task in ovni.
    pub(super) task: u32,
    pub(super) number: u32,
}

impl Tasks {
    pub(super) fn len(&self) -> u64 {
        self.of_ranks.iter().map(|tasks| tasks.kinds.len() as u64).sum()
    }

    /// Returns the types of tasks of a rank, by number.
    pub(super) fn types(&self, rank: u32) -> impl Iterator<Item = u32> {
        // One at a time: `collect` sorts a copy of all.
        let mut types = BTreeSet::new();
        types.extend(self.of_ranks[rank as usize].kinds.iter().copied());
        types.into_iter()
    }

    /// Returns number, type and form of the tasks of a rank, by number.
    pub(super) fn created(&self, rank: u32) -> impl Iterator<Item = (u32, u32, bool)> {
        let OfRank { kinds, several, .. } = &self.of_ranks[rank as usize];
        let parallel = several.values().filter(|several| several.is_parallel);
        let parallel: HashSet<u32> = parallel.map(|several| several.task).collect();
        (1..).zip(kinds).map(move |(task, kind)| (task, *kind, parallel.contains(&task)))
    }

    /// Returns the step by which a body leaves its thread.
    pub(super) fn leave(&self, rank: u32, body: Body) -> Step {
        match self.of_ranks[rank as usize].several.get(&body.id) {
            Some(task) if !task.is_parallel && task.begun < task.slices => Step::Pause,
            _ => Step::End,
        }
    }

    /// Returns the body that begins or goes on with a change, if one does, and the step.
    pub(super) fn enter(
        &mut self,
        rank: u32,
        change: Change,
        path: &Path,
    ) -> Result<Option<(Step, Body)>> {
        let Some(to) = change.to else { return Ok(None) };
        let entered = self.of_ranks[rank as usize].enter(to).ok_or_else(|| {
            let source = io::Error::new(io::ErrorKind::InvalidData, "changed while it was read");
            Error::Io { path: path.to_owned(), source }
        })?;
        Ok(Some(entered))
    }
}

impl OfRank {
    /// Begins a slice in the second pass; `None` if the first one cannot have found it.
    fn enter(&mut self, Values { id, kind }: Values) -> Option<(Step, Body)> {
        let several = self.several.get_mut(&id);
        let is_first = several.as_ref().is_none_or(|several| several.begun == 0);
        let task = match &several {
            Some(several) => several.task,
            None => self.begun + 1,
        };
        if is_first {
            // Tasks begin in the order of the first pass.
            self.begun += 1;
            let known = *self.kinds.get(task as usize - 1)?;
            if task != self.begun || i64::from(known) != kind {
                return None;
            }
        }
        let Some(several) = several else {
            return Some((Step::Execute, Body { id, task, number: 0 }));
        };
        if several.begun == several.slices {
            return None;
        }
        several.begun += 1;
        let number = if several.is_parallel { several.begun } else { 0 };
        let is_executed = several.is_parallel || is_first;
        let step = if is_executed { Step::Execute } else { Step::Resume };
        Some((step, Body { id, task, number }))
    }
}
