//! The whole graph of a small run: which task came after which, and why.
//!
//! Tasks are noted with their accesses as they are registered ([`recorder`]), so they are noted in
//! the order that registration gives them. What depends on what is found later ([`dependencies`]),
//! from the accesses alone and not from what was complete when: a program that spawns in the same
//! order has the same graph. It is drawn as SVG by hand ([`layout`], [`svg`]).
//!
//! Programs, services, events of a group, and the tasks that free arrays are left out. What tasks
//! of different groups tell each other by other means than accesses is not known here.

mod dependencies;
mod layout;
mod recorder;
mod svg;

use std::sync::Arc;

use crate::data::{ArrayLabel, Mode, Rect};

pub use self::recorder::GraphRecorder;

/// The tasks of a run and what they wait for, from a [`GraphRecorder`].
#[derive(Clone, Debug, Default)]
pub struct TaskGraph {
    tasks: Vec<GraphTask>,
    dependencies: Vec<Dependency>,
    spawned: u64,
}

/// A task of a [`TaskGraph`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GraphTask {
    /// As it was declared.
    pub label: &'static str,
    /// The name of its group.
    pub group: Arc<str>,
    /// The place of the task that this is a child of. The tasks of an iterated graph are children of
    /// the task that runs it.
    pub parent: Option<usize>,
    /// Of a task that runs an iterated graph: how many steps that has.
    pub steps: Option<usize>,
    /// Whether it was declared with [`TaskBuilder::communicates`](crate::TaskBuilder::communicates).
    pub communicates: bool,
    /// What became of it.
    pub outcome: Outcome,
    uses: Vec<Use>,
}

/// What became of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing was heard of it: it is complete, or not yet.
    #[default]
    Fine,
    /// It failed.
    Failed,
    /// It did not run, because a task that it depends on failed or was cancelled.
    NotRun,
    /// Its group was cancelled before it began, or while it was suspended.
    Cancelled,
}

/// Two tasks with the same parent, or with none, one of which comes after the other.
///
/// They use some element in ways that keep their order, and no task spawned in between uses that
/// element in a way that keeps its order with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Dependency {
    /// The place of the earlier task.
    pub from: usize,
    /// The place of the one that waits: for the earlier task, and for all that this has lent to its
    /// children.
    pub to: usize,
    /// What of it waits.
    pub waits: Waits,
}

/// What of a task waits for an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Waits {
    /// Its body.
    Body,
    /// Its children, but not its body: the access is weak.
    Children,
    /// Its body in the next iteration. Every task of an iterated graph also waits for itself.
    NextIteration,
}

/// One access of a task.
#[derive(Clone, Debug)]
struct Use {
    array: ArrayLabel,
    rect: Rect,
    mode: Mode,
    is_weak: bool,
    /// Of a reduction.
    operator: Option<std::any::TypeId>,
}

impl TaskGraph {
    /// The tasks that were noted, in the order of their spawns: parents before their children.
    pub fn tasks(&self) -> &[GraphTask] {
        &self.tasks
    }

    /// What waits for what, by the places of the tasks; each pair once, in order.
    pub fn dependencies(&self) -> &[Dependency] {
        &self.dependencies
    }

    /// How many tasks there were, those included that the recorder had no room for.
    pub fn spawned(&self) -> u64 {
        self.spawned
    }

    /// A drawing in SVG: groups side by side, each in layers from the top down, so that a task lies
    /// below all that it waits for; children inside their parents. Tasks that communicate have
    /// pointed ends.
    pub fn to_svg(&self) -> String {
        svg::draw(self)
    }
}
