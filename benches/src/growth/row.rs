//! Row of the table: a number that grows, and the measurement of one unit.

use super::plan::{Plan, Samples};
use super::shape::Shape;

/// Row of the table.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Name in figures.
    pub(super) name: &'static str,
    /// Description of the number that grows, and of the unit.
    pub(super) what: &'static str,
    /// Values of that number, ascending.
    pub(super) sizes: &'static [usize],
    /// Largest value at which instructions are counted; `None` if instructions say nothing about
    /// time.
    pub(super) counted: Option<usize>,
    /// Wanted cost per unit at the largest size.
    pub(super) target: Option<f64>,
    /// Unit of the cost.
    pub(super) unit: &'static str,
    /// Function that measures.
    pub(super) sample: Sample,
}

/// Function that measures the cost per unit, one for each repetition.
#[derive(Clone, Copy)]
pub(super) enum Sample {
    /// Measures one size of what has no groups.
    OfSize(fn(Plan, usize) -> Samples),
    /// Measures one shape.
    OfShape {
        /// Number of groups of the base size that need as much memory as one of the largest size.
        groups: usize,
        /// Function that measures.
        sample: fn(Plan, Shape) -> Samples,
    },
}

/// Size that the largest is compared with.
const BASE: usize = 100;

/// Largest accepted ratio of the costs per unit.
pub(super) const MOST_GROWTH: f64 = 2.0;

impl Row {
    /// Creates a row of sizes from a hundred on, in nanoseconds.
    pub(super) const fn new(
        name: &'static str,
        what: &'static str,
        sizes: &'static [usize],
        sample: fn(Plan, usize) -> Samples,
    ) -> Self {
        Row::of(name, what, sizes, Sample::OfSize(sample))
    }

    /// Creates a row like [`Row::new`], whose largest size is compared with this many groups of the
    /// base size.
    pub(super) const fn in_groups(
        name: &'static str,
        what: &'static str,
        sizes: &'static [usize],
        groups: usize,
        sample: fn(Plan, Shape) -> Samples,
    ) -> Self {
        Row::of(name, what, sizes, Sample::OfShape { groups, sample })
    }

    const fn of(
        name: &'static str,
        what: &'static str,
        sizes: &'static [usize],
        sample: Sample,
    ) -> Self {
        Row { name, what, sizes, counted: Some(3_000), target: None, unit: "ns", sample }
    }

    /// Measures one group of a size.
    ///
    /// **Errors**: those of the measured crates.
    pub(super) fn measure(&self, plan: Plan, size: usize) -> Samples {
        match self.sample {
            Sample::OfSize(sample) => sample(plan, size),
            Sample::OfShape { sample, .. } => sample(plan, Shape::one(size)),
        }
    }

    /// Returns the groups that the largest size is compared with, if the row has any.
    pub(super) fn groups(&self) -> Option<Shape> {
        match self.sample {
            Sample::OfSize(_) => None,
            Sample::OfShape { groups, .. } => Some(Shape { groups, size: self.base() }),
        }
    }

    /// Measures those groups.
    ///
    /// **Errors**: those of the measured crates.
    pub(super) fn measure_groups(&self) -> Samples {
        match (self.sample, self.groups()) {
            (Sample::OfShape { sample, .. }, Some(shape)) => sample(Plan::Times, shape),
            _ => Ok(Vec::new()),
        }
    }

    /// Sets the wanted cost per unit at the largest size.
    pub(super) const fn target(self, cost: f64) -> Self {
        Row { target: Some(cost), ..self }
    }

    /// Sets the largest size at which instructions are counted.
    pub(super) const fn counted_to(self, size: usize) -> Self {
        Row { counted: Some(size), ..self }
    }

    /// Returns the size to compare with: 100, or the smallest if no size is larger than twice that.
    pub(super) fn base(&self) -> usize {
        let is_base = |size: &&usize| **size == BASE && self.largest() > 2 * BASE;
        self.sizes.iter().find(is_base).or(self.sizes.first()).copied().unwrap_or(BASE)
    }

    /// Returns the largest size.
    pub(super) fn largest(&self) -> usize {
        self.sizes.last().copied().unwrap_or(BASE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_a_hundred_or_the_smallest_of_few() {
        let base = |sizes| Row::new("row", "", sizes, |_, _| Ok(Vec::new())).base();
        assert_eq!(base(&[10, 100, 1_000]), 100);
        assert_eq!(base(&[10, 100, 128]), 10);
        assert_eq!(base(&[1, 16, 64]), 1);
    }
}
