//! The whole graph of a small run: its tasks, and the dependencies between them.
//!
//! Tasks are recorded with their accesses as they are registered ([`recorder`]), so in the order
//! that registration gives them. Dependencies are computed later ([`dependencies`]), from the
//! accesses alone and not from the times of completion: a program that spawns in the same order has
//! the same graph. It is drawn as SVG ([`layout`], [`svg`]).
//!
//! Mains, services, events of a group, and the tasks that free arrays are left out. Communication
//! between tasks of different groups by other means than accesses is not known here.

mod dependencies;
mod layout;
mod recorder;
mod svg;

use std::sync::Arc;

use crate::data::{ArrayLabel, Mode, Rect};

pub use self::recorder::GraphRecorder;

/// The tasks of a run and their dependencies, from a [`GraphRecorder`].
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
    /// The declared label.
    pub label: &'static str,
    /// The name of its group.
    pub group: Arc<str>,
    /// Index of the parent, for a child. The tasks of an iterated graph are children of the task
    /// that runs it.
    pub parent: Option<usize>,
    /// Number of steps, for a task that runs an iterated graph.
    pub steps: Option<usize>,
    /// `true` if the task was declared with
    /// [`TaskBuilder::communicates`](crate::TaskBuilder::communicates).
    pub communicates: bool,
    /// Outcome of the task.
    pub outcome: Outcome,
    uses: Vec<RecordedAccess>,
}

/// The outcome of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// No failure was recorded: the task is complete, or not yet.
    #[default]
    Fine,
    /// The task failed.
    Failed,
    /// The task did not run, because a task that it depends on failed or was cancelled.
    NotRun,
    /// The group was cancelled before the task began, or while it was suspended.
    Cancelled,
}

/// Two tasks with the same parent, or with none, one of which comes after the other.
///
/// They use some element in ways that keep their order, and no task spawned in between uses that
/// element in a way that keeps its order with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Dependency {
    /// Index of the earlier task.
    pub from: usize,
    /// Index of the task that waits: for the earlier task, and for all regions that this has lent
    /// to its children.
    pub to: usize,
    /// The part of the later task that waits.
    pub waits: Waits,
}

/// The part of a task that waits for an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Waits {
    /// The body.
    Body,
    /// The children, but not the body: the access is weak.
    Children,
    /// The body in the next iteration. Every task of an iterated graph also waits for itself.
    NextIteration,
}

/// An access of a recorded task.
#[derive(Clone, Debug)]
struct RecordedAccess {
    array: ArrayLabel,
    rect: Rect,
    mode: Mode,
    is_weak: bool,
    /// Operator of a reduction.
    operator: Option<std::any::TypeId>,
}

impl TaskGraph {
    /// Returns the recorded tasks, in the order of their spawns: parents before their children.
    pub fn tasks(&self) -> &[GraphTask] {
        &self.tasks
    }

    /// Returns the dependencies, by the indices of the tasks; each pair once, in order.
    pub fn dependencies(&self) -> &[Dependency] {
        &self.dependencies
    }

    /// Returns the number of spawned tasks, including those that the recorder had no room for.
    pub fn spawned(&self) -> u64 {
        self.spawned
    }

    /// Draws the graph as SVG: groups side by side, each in layers from the top down, so that a
    /// task is below all tasks that it waits for; children inside their parents. Tasks that
    /// communicate have pointed ends.
    pub fn to_svg(&self) -> String {
        svg::draw(self)
    }
}
