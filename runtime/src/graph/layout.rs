//! The layout of a drawing.
//!
//! Tasks with the same parent make a picture of their own, inside the parent's frame. A task is in
//! the row after the last of the tasks that it waits for; an edge that passes rows has a position
//! in each, so that no box covers it. The order in a row follows the neighbours in the rows above
//! and below alternately, and so do the positions, as closely as boxes allow (least squares).
//!
//! Tasks without a parent are in lanes, one for each group, with common rows.

use std::collections::BTreeMap;

use super::svg::{text_width, title_of};
use super::{Dependency, TaskGraph, Waits};

/// Free space around a task. **Units**: pixels, as of all constants below.
const GAP: f64 = 14.0;
const ROW_GAP: f64 = 34.0;
const LANE_GAP: f64 = 40.0;
pub(super) const BOX_HEIGHT: f64 = 22.0;
pub(super) const PADDING: f64 = 8.0;
/// Space on the right for edges that lead up.
pub(super) const BESIDE: f64 = 24.0;
/// Space above the tasks of a lane, for its name.
const LANE_HEADER: f64 = 26.0;

/// Number of sweeps over the rows, down and up; more of them change little.
const SWEEPS: usize = 6;

/// The rectangle of a task or of a lane.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DrawnBox {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The frame of a group.
pub(super) struct Lane {
    pub(super) group: String,
    pub(super) place: DrawnBox,
}

pub(super) struct Layout {
    /// Boxes by task.
    pub(super) boxes: Vec<DrawnBox>,
    pub(super) lanes: Vec<Lane>,
    /// Points, by dependency, where it passes rows: x, and the top and the bottom of the row. The
    /// first one is below the earlier task.
    pub(super) routes: Vec<Vec<(f64, f64, f64)>>,
    pub(super) width: f64,
    pub(super) height: f64,
}

pub(super) fn lay_out(graph: &TaskGraph) -> Layout {
    let mut children: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (number, task) in graph.tasks.iter().enumerate() {
        children.entry(task.parent).or_default().push(number);
    }
    let mut inside: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (number, dependency) in graph.dependencies.iter().enumerate() {
        inside.entry(graph.tasks[dependency.from].parent).or_default().push(number);
    }
    let mut layout = Layout {
        boxes: graph.tasks.iter().map(|task| leaf(&title_of(task))).collect(),
        lanes: Vec::new(),
        routes: vec![Vec::new(); graph.dependencies.len()],
        width: 0.0,
        height: 0.0,
    };
    // Inner pictures first: children come after their parents.
    for (parent, members) in children.iter().rev() {
        let edges = inside.get(parent).map_or(&[][..], |edges| edges);
        let Some(parent) = *parent else {
            let lanes = lanes(graph, members);
            (layout.width, layout.height) = layout.arrange(graph, &lanes, edges, true);
            continue;
        };
        let lanes = [("", members.clone())];
        let (mut width, height) = layout.arrange(graph, &lanes, edges, false);
        if edges.iter().any(|&edge| graph.dependencies[edge].waits == Waits::NextIteration) {
            width += BESIDE;
        }
        let place = &mut layout.boxes[parent];
        place.width = place.width.max(width + 2.0 * PADDING);
        place.height = BOX_HEIGHT + height + PADDING;
    }
    layout.move_into_parents(graph);
    layout
}

fn leaf(title: &str) -> DrawnBox {
    let width = text_width(title) + 2.0 * PADDING;
    DrawnBox { width, height: BOX_HEIGHT, ..DrawnBox::default() }
}

/// Returns the tasks without a parent by group, in the order of the first ones.
fn lanes<'a>(graph: &'a TaskGraph, members: &[usize]) -> Vec<(&'a str, Vec<usize>)> {
    let mut lanes: Vec<(&str, Vec<usize>)> = Vec::new();
    for &member in members {
        let group = &*graph.tasks[member].group;
        match lanes.iter_mut().find(|(name, _)| *name == group) {
            Some((_, of_group)) => of_group.push(member),
            None => lanes.push((group, vec![member])),
        }
    }
    lanes.sort_by_key(|(name, _)| *name);
    lanes
}

impl Layout {
    /// Lays out tasks with the same parent, from the origin on. Returns width and height.
    fn arrange(
        &mut self,
        graph: &TaskGraph,
        lanes: &[(&str, Vec<usize>)],
        edges: &[usize],
        named: bool,
    ) -> (f64, f64) {
        let down: Vec<usize> = edges
            .iter()
            .copied()
            .filter(|&edge| graph.dependencies[edge].waits != Waits::NextIteration)
            .collect();
        let row_of = rows(graph, &down);
        let row_of = |task: usize| row_of.get(&task).copied().unwrap_or(0);
        let mut heights: Vec<f64> = Vec::new();
        for &task in lanes.iter().flat_map(|(_, members)| members) {
            heights.resize(heights.len().max(row_of(task) + 1), 0.0);
            heights[row_of(task)] = heights[row_of(task)].max(self.boxes[task].height);
        }
        let mut tops = Vec::new();
        let mut y = if named { LANE_HEADER } else { 0.0 };
        for height in &heights {
            tops.push(y);
            y += height + ROW_GAP;
        }
        let bottom = (y - ROW_GAP).max(0.0);
        let mut left = 0.0;
        for (name, members) in lanes {
            let mut picture = Picture::default();
            let mut items = BTreeMap::new();
            for &task in members {
                items.insert(task, picture.add(row_of(task), self.boxes[task].width));
            }
            let mut passes = Vec::new();
            for &edge in &down {
                let Dependency { from, to, .. } = graph.dependencies[edge];
                if let Some((&first, &last)) = items.get(&from).zip(items.get(&to)) {
                    passes.push((edge, picture.connect(first, last, row_of(from)..row_of(to))));
                }
            }
            let width = picture.arrange().max(if named { text_width(name) } else { 0.0 });
            for (&task, &item) in &items {
                let place = &mut self.boxes[task];
                place.x = left + picture.items[item].x - place.width / 2.0;
                place.y = tops[row_of(task)];
            }
            for (edge, passed) in passes {
                let row = row_of(graph.dependencies[edge].from);
                let route = passed.iter().enumerate().map(|(nth, &item)| {
                    let (top, height) = (tops[row + nth], heights[row + nth]);
                    (left + picture.items[item].x, top, top + height)
                });
                self.routes[edge] = route.collect();
            }
            if named {
                let place = DrawnBox { x: left, y: 0.0, width, height: bottom };
                self.lanes.push(Lane { group: (*name).to_owned(), place });
            }
            left += width + LANE_GAP;
        }
        ((left - LANE_GAP).max(0.0), bottom)
    }

    /// Moves inner boxes to the positions of their parents.
    fn move_into_parents(&mut self, graph: &TaskGraph) {
        for (number, task) in graph.tasks.iter().enumerate() {
            if let Some(parent) = task.parent.map(|parent| self.boxes[parent]) {
                self.boxes[number].x += parent.x + PADDING;
                self.boxes[number].y += parent.y + BOX_HEIGHT;
            }
        }
        for (route, dependency) in self.routes.iter_mut().zip(&graph.dependencies) {
            if let Some(parent) = graph.tasks[dependency.from].parent {
                let parent = self.boxes[parent];
                for (x, top, bottom) in route {
                    *x += parent.x + PADDING;
                    *top += parent.y + BOX_HEIGHT;
                    *bottom += parent.y + BOX_HEIGHT;
                }
            }
        }
    }
}

/// Returns the row of each task: the length of the longest path to it. Edges lead to later tasks.
fn rows(graph: &TaskGraph, edges: &[usize]) -> BTreeMap<usize, usize> {
    let mut rows = BTreeMap::new();
    let mut edges: Vec<Dependency> = edges.iter().map(|&edge| graph.dependencies[edge]).collect();
    edges.sort_unstable_by_key(|edge| (edge.to, edge.from));
    for Dependency { from, to, .. } in edges {
        let above = rows.get(&from).copied().unwrap_or(0);
        let row = rows.entry(to).or_insert(0);
        *row = (above + 1).max(*row);
    }
    rows
}

/// Boxes, and edges that pass rows, to be put side by side in each row.
#[derive(Default)]
struct Picture {
    items: Vec<Item>,
    /// Items of each row, from left to right.
    rows: Vec<Vec<usize>>,
}

struct Item {
    /// Position of the middle.
    x: f64,
    width: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

impl Picture {
    fn add(&mut self, row: usize, width: f64) -> usize {
        self.rows.resize(self.rows.len().max(row + 1), Vec::new());
        self.rows[row].push(self.items.len());
        self.items.push(Item { x: 0.0, width, above: Vec::new(), below: Vec::new() });
        self.items.len() - 1
    }

    /// Adds an edge. Returns the first item and those in the rows that it passes.
    fn connect(&mut self, first: usize, last: usize, rows: std::ops::Range<usize>) -> Vec<usize> {
        let mut items = vec![first];
        items.extend(rows.skip(1).map(|row| self.add(row, 0.0)));
        for (above, below) in items.iter().zip(items.iter().skip(1).chain([&last])) {
            self.items[*above].below.push(*below);
            self.items[*below].above.push(*above);
        }
        items
    }

    /// Computes the positions of the items. Returns the width; the left end is at 0.
    fn arrange(&mut self) -> f64 {
        (0..self.rows.len()).for_each(|row| self.place(row, |_| 0.0));
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let mut order: Vec<usize> = (0..self.rows.len()).collect();
            if !down {
                order.reverse();
            }
            for row in order {
                let wish = |&item: &usize| {
                    let Item { x, above, below, .. } = &self.items[item];
                    let near = if down { above } else { below };
                    let sum: f64 = near.iter().map(|&other| self.items[other].x).sum();
                    (item, if near.is_empty() { *x } else { sum / near.len() as f64 })
                };
                let wishes: BTreeMap<usize, f64> = self.rows[row].iter().map(wish).collect();
                self.rows[row].sort_by(|a, b| wishes[a].total_cmp(&wishes[b]));
                self.place(row, |item| wishes[&item]);
            }
        }
        (0..self.rows.len()).for_each(|row| self.pack(row));
        let ends =
            self.items.iter().map(|item| (item.x - item.width / 2.0, item.x + item.width / 2.0));
        let (left, right) =
            ends.fold((f64::MAX, f64::MIN), |(l, r), (left, right)| (left.min(l), right.max(r)));
        self.items.iter_mut().for_each(|item| item.x -= left);
        (right - left).max(0.0)
    }

    /// Moves the items of a row without edges next to those with edges.
    fn pack(&mut self, row: usize) {
        let is_alone = |item: &Item| item.above.is_empty() && item.below.is_empty();
        let row = &self.rows[row];
        let first = row.iter().position(|&item| !is_alone(&self.items[item])).unwrap_or(0);
        let right = row[first..].windows(2).map(|pair| (pair[0], pair[1], 1.0));
        let left =
            row[..row.len().min(first + 1)].windows(2).rev().map(|pair| (pair[1], pair[0], -1.0));
        for (inner, outer, side) in right.chain(left) {
            let width = (self.items[inner].width + self.items[outer].width) / 2.0 + GAP;
            if is_alone(&self.items[outer]) {
                self.items[outer].x = self.items[inner].x + side * width;
            }
        }
    }

    /// Puts the items of a row, in their order, as close to their wished positions as their widths
    /// allow: items that would overlap, around the mean of their wishes.
    fn place(&mut self, row: usize, wish: impl Fn(usize) -> f64) {
        /// Items side by side without a gap.
        struct Run {
            sum: f64,
            count: usize,
        }
        let mean = |run: &Run| run.sum / run.count as f64;
        let mut offsets = Vec::new();
        let mut runs: Vec<Run> = Vec::new();
        let mut end = 0.0;
        for &item in &self.rows[row] {
            let width = self.items[item].width + GAP;
            let offset = end + width / 2.0;
            end += width;
            offsets.push(offset);
            let mut run = Run { sum: wish(item) - offset, count: 1 };
            while let Some(before) = runs.pop_if(|before| mean(before) >= mean(&run)) {
                run = Run { sum: run.sum + before.sum, count: run.count + before.count };
            }
            runs.push(run);
        }
        let starts = runs.iter().flat_map(|run| std::iter::repeat_n(mean(run), run.count));
        for ((&item, offset), start) in self.rows[row].iter().zip(offsets).zip(starts) {
            self.items[item].x = start + offset;
        }
    }
}
