//! A dump as text.

use std::fmt;

use talpf_traces::counted;

use super::snapshot::label_of;
use super::{Access, Dump, Standing, Task};

/// Largest number of tasks in a text.
const TASKS: usize = 60;
/// Largest number of tasks that are named for one that waits for them.
const HOLDERS: usize = 4;

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |standing| self.count(standing);
        writeln!(
            f,
            "{} of {} in a task; {}: {} running, {} ready, {} suspended, {} ended but held, {} \
             waiting",
            self.busy,
            counted(self.workers, "worker"),
            counted(self.tasks.len(), "task"),
            count(Standing::Running),
            count(Standing::Ready),
            count(Standing::Suspended),
            count(Standing::Ended),
            count(Standing::Waiting),
        )?;
        f.write_str(&self.notes)?;
        let (holders, children) = (self.holders(), self.children());
        for task in self.tasks.iter().take(TASKS) {
            let holders = holders.get(&task.id).map_or(&[][..], Vec::as_slice);
            write_task(f, task, holders, children.get(&task.id).copied())?;
        }
        match self.tasks.len().saturating_sub(TASKS) {
            0 => Ok(()),
            more => writeln!(f, "  and {}", counted(more, "more task")),
        }
    }
}

fn write_task(
    f: &mut fmt::Formatter<'_>,
    task: &Task,
    holders: &[&Task],
    children: Option<usize>,
) -> fmt::Result {
    write!(f, "  task `{}` ", task.label)?;
    if let Some(parent) = task.parent {
        write!(f, "in `{}` ", parent.label)?;
    }
    write!(f, "of {} ", task.group)?;
    match task.standing {
        Standing::Running => match task.spawner {
            Some(spawner) => write!(f, "runs inside a spawn of `{spawner}`")?,
            None => f.write_str("runs")?,
        },
        Standing::Ready => f.write_str("is ready")?,
        Standing::Suspended => {
            write!(f, "is suspended and waits for {}", task.waits_for.unwrap_or("?"))?;
        }
        Standing::Ended => match children {
            Some(1) => f.write_str("has ended and waits for a child")?,
            Some(children) => write!(f, "has ended and waits for {children} children")?,
            None => f.write_str("has ended and waits for open guards or events")?,
        },
        Standing::Waiting if task.pending == 0 => f.write_str("waits for a tile lock")?,
        Standing::Waiting if task.acted => f.write_str("is held back by its actions")?,
        Standing::Waiting => {
            let accesses = if task.pending == 1 { "access" } else { "accesses" };
            write!(f, "waits for {} earlier {accesses}", task.pending)?;
            for (nth, holder) in holders.iter().take(HOLDERS).enumerate() {
                write!(f, "{} `{}`", if nth == 0 { ", of" } else { "," }, holder.label)?;
            }
        }
    }
    f.write_str("\n")?;
    task.accesses.iter().try_for_each(|access| write_access(f, access))
}

fn write_access(f: &mut fmt::Formatter<'_>, access: &Access) -> fmt::Result {
    write!(f, "    {access}")?;
    for (nth, task) in access.waiting.iter().enumerate() {
        write!(f, "{} `{}`", if nth == 0 { ", awaited by" } else { "," }, label_of(*task))?;
    }
    f.write_str("\n")
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.array {
            Some(array) => write!(f, "{} {}", self.mode, array.part(self.rect)),
            None => write!(f, "{} an array{}", self.mode, self.rect),
        }
    }
}
