//! Task graph: a pattern with all its dependences.

use std::fmt::Write as _;
use std::ops::Range;

use super::Pattern;
use super::checksum::{begin, fold};

/// Immutable graph of `steps x width` points of a pattern.
#[derive(Debug)]
pub struct Graph {
    pattern: Pattern,
    width: usize,
    steps: usize,
    sets: usize,
    /// Dependences by set and point, `sets x width`.
    dependences: Vec<Vec<usize>>,
    checksum: u64,
}

/// Contents of the two rows of cells after a run.
pub(super) type Rows = [Vec<u64>; 2];

impl Graph {
    /// Creates the graph of a pattern. `radix` is used by the patterns that have one.
    pub fn new(pattern: Pattern, width: usize, steps: usize, radix: usize) -> Self {
        let sets = pattern.sets(width);
        let lists = (0..sets).flat_map(|set| (0..width).map(move |point| (set, point)));
        let lists = lists.map(|(set, point)| pattern.dependences(set, point, width, radix));
        let dependences = lists.collect();
        let mut graph = Graph { pattern, width, steps, sets, dependences, checksum: 0 };
        graph.checksum = checksum(&graph.run_serially());
        graph
    }

    /// Returns the pattern.
    pub fn pattern(&self) -> Pattern {
        self.pattern
    }

    /// Returns the number of points of the widest step.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of steps.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the number of tasks of all steps.
    pub fn tasks(&self) -> usize {
        (0..self.steps).map(|step| self.points(step).len()).sum()
    }

    /// Returns the points of a step.
    pub fn points(&self, step: usize) -> Range<usize> {
        self.pattern.points(step, self.steps, self.width)
    }

    /// Returns the number of steps after which the graph repeats, from the second step on: its
    /// points, their dependences and the rows they use. A graph that does not repeat has all but
    /// the first.
    pub fn period(&self) -> usize {
        let is_like_first = |step| self.points(step) == self.points(0);
        match (0..self.steps).all(is_like_first) {
            true => 2 * self.sets,
            false => self.steps.saturating_sub(1).max(1),
        }
    }

    /// Returns the points of the previous step that a point depends on, in ascending order.
    pub fn dependences(&self, step: usize, point: usize) -> &[usize] {
        let Some(last) = step.checked_sub(1) else { return &[] };
        let list = &self.dependences[step % self.sets * self.width + point];
        let there = self.points(last);
        let begin = list.partition_point(|from| *from < there.start);
        let end = list.partition_point(|from| *from < there.end);
        &list[begin..end]
    }

    /// Returns the checksum that every run must leave.
    pub fn checksum(&self) -> u64 {
        self.checksum
    }

    fn run_serially(&self) -> Rows {
        let mut rows = [vec![0; self.width], vec![0; self.width]];
        for step in 0..self.steps {
            for point in self.points(step) {
                let from = &rows[(step + 1) % 2];
                let start = begin(rows[step % 2][point], step, point);
                let inputs = self.dependences(step, point).iter();
                rows[step % 2][point] = inputs.fold(start, |sum, input| fold(sum, from[*input]));
            }
        }
        rows
    }

    /// Formats the graph as numbers for `benches/peers/metg.c`.
    pub fn to_text(&self) -> String {
        let mut text = format!("{} {} {}\n", self.width, self.steps, self.sets);
        for step in 0..self.steps {
            let points = self.points(step);
            let _ = writeln!(text, "{} {} {}", points.start, points.len(), step % self.sets);
        }
        for list in &self.dependences {
            let _ = write!(text, "{}", list.len());
            for from in list {
                let _ = write!(text, " {from}");
            }
            text.push('\n');
        }
        text
    }
}

/// Returns the checksum of both rows.
pub(super) fn checksum(rows: &Rows) -> u64 {
    rows.iter().flatten().copied().fold(0, fold)
}
