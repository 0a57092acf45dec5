//! Computation of dependencies from the recorded accesses.
//!
//! Tasks with the same parent enter the history of each array in the order of their spawns. The
//! history keeps those parts of an access that no `output` or `inout` has overwritten: a later task
//! waits for that one alone.

use std::any::TypeId;
use std::collections::{BTreeMap, HashMap};

use super::{Dependency, GraphTask, RecordedAccess, Waits};
use crate::data::{Mode, Rect};

/// The history of an array among the tasks of one parent.
#[derive(Default)]
struct History {
    past: Vec<Past>,
    /// Reductions that may be joined.
    open: Vec<OpenReduction>,
    /// Number of reductions so far.
    reductions: usize,
}

struct Past {
    task: usize,
    rect: Rect,
    /// Parts of the access that were not overwritten.
    left: Vec<Rect>,
    kind: AccessKind,
}

/// The properties of an access that decide its order with others. Accesses of one reduction have
/// its number.
#[derive(Clone, Copy, PartialEq)]
struct AccessKind {
    mode: Mode,
    reduction: usize,
}

struct OpenReduction {
    rect: Rect,
    operator: Option<TypeId>,
    number: usize,
}

/// Returns the dependencies, in no order, between tasks in the order of their spawns.
pub(super) fn among(tasks: &[GraphTask]) -> impl Iterator<Item = Dependency> {
    let mut histories: HashMap<(Option<usize>, u64), History> = HashMap::new();
    let mut found: BTreeMap<(usize, usize), Waits> = BTreeMap::new();
    for (number, task) in tasks.iter().enumerate() {
        for new in task.uses.iter().filter(|new| !new.rect.is_empty()) {
            let history = histories.entry((task.parent, new.array.id())).or_default();
            let waits = if new.is_weak { Waits::Children } else { Waits::Body };
            for from in history.enter(number, new) {
                let known = found.entry((from, number)).or_insert(waits);
                *known = waits.min(*known);
            }
        }
    }
    found.into_iter().map(|((from, to), waits)| Dependency { from, to, waits })
}

impl History {
    /// Adds an access of `task`, and returns the tasks that `task` has to wait for because of it.
    fn enter(&mut self, task: usize, new: &RecordedAccess) -> Vec<usize> {
        let kind = AccessKind { mode: new.mode, reduction: self.reduction_of(new) };
        let met = |past: &&Past| past.task != task && past.rect.overlaps(&new.rect);
        let met: Vec<&Past> = self.past.iter().filter(met).collect();
        let mut from = Vec::new();
        for (nth, past) in met.iter().enumerate().filter(|(_, past)| past.kind.orders(kind)) {
            let mut direct: Vec<Rect> = past
                .left
                .iter()
                .map(|part| part.intersection(&new.rect))
                .filter(|part| !part.is_empty())
                .collect();
            for between in &met[nth + 1..] {
                if past.kind.orders(between.kind) && between.kind.orders(kind) {
                    direct = without(direct, &between.rect);
                }
            }
            if !direct.is_empty() {
                from.push(past.task);
            }
        }
        if !matches!(new.mode, Mode::In) && !new.mode.is_unordered() {
            for past in &mut self.past {
                past.left = without(std::mem::take(&mut past.left), &new.rect);
            }
            self.past.retain(|past| !past.left.is_empty());
        }
        self.past.push(Past { task, rect: new.rect, left: vec![new.rect], kind });
        from
    }

    /// Returns the number of the reduction that an access joins or begins. Other accesses end the
    /// reductions that they overlap.
    fn reduction_of(&mut self, new: &RecordedAccess) -> usize {
        let same = |open: &OpenReduction| {
            new.mode == Mode::Reduction && open.rect == new.rect && open.operator == new.operator
        };
        self.open.retain(|open| same(open) || !open.rect.overlaps(&new.rect));
        if let Some(joined) = self.open.iter().find(|open| same(open)) {
            return joined.number;
        }
        self.reductions += 1;
        if new.mode == Mode::Reduction {
            let (rect, operator, number) = (new.rect, new.operator, self.reductions);
            self.open.push(OpenReduction { rect, operator, number });
        }
        self.reductions
    }
}

impl AccessKind {
    /// Returns `true` if accesses to one element, of different tasks, keep their order.
    fn orders(self, other: AccessKind) -> bool {
        match self.mode {
            Mode::In | Mode::Concurrent | Mode::Commutative => self.mode != other.mode,
            Mode::Reduction => self != other,
            Mode::Out | Mode::InOut => true,
        }
    }
}

/// Returns the parts of `parts` outside `hole`.
fn without(parts: Vec<Rect>, hole: &Rect) -> Vec<Rect> {
    let mut left = Vec::new();
    for part in parts {
        if !part.overlaps(hole) {
            left.push(part);
            continue;
        }
        let (row, row_end) = (part.row.max(hole.row), part.row_end.min(hole.row_end));
        let around = [
            Rect { row_end: row, ..part },
            Rect { row: row_end, ..part },
            Rect { row, row_end, col_end: hole.col, ..part },
            Rect { row, row_end, col: hole.col_end, ..part },
        ];
        left.extend(around.into_iter().filter(|rect| !rect.is_empty()));
    }
    left
}
