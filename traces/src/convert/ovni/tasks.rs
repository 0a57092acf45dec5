//! Tasks of a trace in the terms of the nOS-V model.
//!
//! A task is created once for its process, with a new number, as those of ovni have 32 bits. Each slice
//! executes a *body* of it. A task with one slice is a normal one, which is executed and ends. So is one that
//! other tasks have interrupted where it ran, each of its slices coming back from the one that interrupted
//! it: it is paused and resumed between. nOS-V lets no body go on in another thread, or past one that was
//! paused later, as a task does here that has waited; such a task is a parallel one, and each slice a body
//! with the number of the slice, from 1.
//!
//! The trace does not say where a task has ended, so that a first pass over it counts its slices.

use std::collections::{HashMap, HashSet};
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

/// Task of a rank.
#[derive(Clone, Copy, Debug)]
struct Task {
    /// Number in ovni, from 1 in the order in which tasks of the rank begin.
    number: u32,
    kind: u32,
    /// Number of slices in the trace.
    slices: u32,
    /// Number of slices that have begun in the second pass.
    begun: u32,
    /// Row and index among its interrupted tasks, if it is one.
    interrupted: Option<(u32, u32)>,
    /// Each slice is a body of its own.
    is_parallel: bool,
}

/// Tasks of all ranks.
#[derive(Debug)]
pub(super) struct Tasks {
    of_ranks: Vec<HashMap<i64, Task>>,
}

/// First pass over a trace: finds tasks and event types.
#[derive(Debug)]
pub(super) struct Survey {
    path: PathBuf,
    ranks: Vec<u32>,
    rows: Vec<(Shown, Vec<i64>)>,
    tasks: Tasks,
    kinds: HashSet<u32>,
}

impl Survey {
    pub(super) fn new(reader: &Reader, prv: &Path) -> Self {
        let of_ranks = (0..reader.ranks()).map(|_| HashMap::new()).collect();
        let ranks = reader.ranks_of_rows().to_vec();
        let rows = vec![(Shown::default(), Vec::new()); ranks.len()];
        let tasks = Tasks { of_ranks };
        Self { path: prv.to_owned(), ranks, rows, tasks, kinds: HashSet::new() }
    }

    pub(super) fn record(&mut self, record: Record<'_>) -> Result<()> {
        if let Record::Event { row, time_ns, values, .. } = record {
            self.kinds.extend(values.iter().map(|(kind, _)| *kind));
            let Self { path, ranks, rows, tasks, .. } = self;
            let (shown, interrupted) = &mut rows[row];
            shown.event(time_ns, values, |change| {
                tasks.count(change, path, (row, ranks[row]), interrupted)
            })?;
        }
        Ok(())
    }

    /// Returns the tasks, and all event types of the trace.
    pub(super) fn finish(self) -> Result<(Tasks, HashSet<u32>)> {
        let Self { path, ranks, rows, mut tasks, kinds } = self;
        for (row, (mut shown, mut interrupted)) in rows.into_iter().enumerate() {
            shown.settle(u64::MAX, |change| {
                tasks.count(change, &path, (row, ranks[row]), &mut interrupted)
            })?;
        }
        if tasks.len() == 0 { Err(Error::NoTasks { path }) } else { Ok((tasks, kinds)) }
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
        self.of_ranks.iter().map(|tasks| tasks.len() as u64).sum()
    }

    /// Returns the types of tasks of a rank, by number.
    pub(super) fn types(&self, rank: u32) -> impl Iterator<Item = u32> {
        let types: HashSet<_> =
            self.of_ranks[rank as usize].values().map(|task| task.kind).collect();
        let mut types: Vec<_> = types.into_iter().collect();
        types.sort_unstable();
        types.into_iter()
    }

    /// Returns number, type and form of the tasks of a rank, by number.
    pub(super) fn created(&self, rank: u32) -> impl Iterator<Item = (u32, u32, bool)> {
        let tasks = self.of_ranks[rank as usize].values();
        let mut tasks: Vec<_> = tasks.copied().collect();
        tasks.sort_unstable_by_key(|task| task.number);
        tasks.into_iter().map(|task| (task.number, task.kind, task.is_parallel))
    }

    /// Counts the slice that begins with a change on a row of a rank.
    fn count(
        &mut self,
        Change { from, to, .. }: Change,
        path: &Path,
        (row, rank): (usize, u32),
        interrupted: &mut Vec<i64>,
    ) -> Result<()> {
        let tasks = &mut self.of_ranks[rank as usize];
        let (Some(from), Some(to)) = (from, to) else {
            interrupted.clear();
            return to.map_or(Ok(()), |to| begin_slice(tasks, to, false, (path, rank)));
        };
        let place = tasks.get(&to.id).and_then(|task| task.interrupted);
        let place = place.filter(|(of, _)| *of as usize == row).map(|(_, index)| index as usize);
        let place = place.filter(|index| interrupted.get(*index) == Some(&to.id));
        if let Some(index) = place {
            interrupted.truncate(index);
        } else if let Some(task) = tasks.get_mut(&from.id) {
            task.interrupted = Some((row as u32, interrupted.len() as u32));
            interrupted.push(from.id);
        }
        begin_slice(tasks, to, place.is_some(), (path, rank))
    }

    /// Returns the step by which a body leaves its thread.
    pub(super) fn leave(&self, rank: u32, body: Body) -> Step {
        match self.of_ranks[rank as usize].get(&body.id) {
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
        let Some(Values { id, .. }) = change.to else { return Ok(None) };
        let task = self.of_ranks[rank as usize].get_mut(&id);
        let Some(task) = task.filter(|task| task.begun < task.slices) else {
            let source = io::Error::new(io::ErrorKind::InvalidData, "changed while it was read");
            return Err(Error::Io { path: path.to_owned(), source });
        };
        task.begun += 1;
        let number = if task.is_parallel { task.begun } else { 0 };
        let step = if task.is_parallel || task.begun == 1 { Step::Execute } else { Step::Resume };
        Ok(Some((step, Body { id, task: task.number, number })))
    }
}

/// Counts a slice of a task that begins, or that comes back from the one that has interrupted it.
fn begin_slice(
    tasks: &mut HashMap<i64, Task>,
    Values { id, kind: number }: Values,
    comes_back: bool,
    (path, rank): (&Path, u32),
) -> Result<()> {
    let what = "task type";
    let too_large = |_| Error::OvniNumber { path: path.to_owned(), what, number };
    let kind = u32::try_from(number).map_err(too_large)?;
    let number = tasks.len() as u32 + 1;
    let new = Task { number, kind, slices: 0, begun: 0, interrupted: None, is_parallel: false };
    let task = tasks.entry(id).or_insert(new);
    if task.kind != kind {
        let (path, types) = (path.to_owned(), [task.kind, kind]);
        return Err(Error::TaskOfTwoTypes { path, rank, task: id, types });
    }
    task.is_parallel |= task.slices > 0 && !comes_back;
    task.slices = task.slices.saturating_add(1);
    Ok(())
}
