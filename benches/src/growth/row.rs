//! A row of the table: a number that grows, and how a unit of it is measured.

use super::plan::{Plan, Samples};

/// A row.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// The name that figures carry.
    pub(super) name: &'static str,
    /// The number that grows, and the unit of the cost.
    pub(super) what: &'static str,
    /// Values of that number, ascending.
    pub(super) sizes: &'static [usize],
    /// The largest value at which steps are counted; `None` where time is no matter of steps.
    pub(super) counted: Option<usize>,
    /// Cost of a unit that is asked for at the largest size.
    pub(super) asked: Option<f64>,
    /// Of the cost.
    pub(super) unit: &'static str,
    /// Measures one size: the cost of a unit, once for each repetition.
    pub(super) sample: fn(Plan, usize) -> Samples,
}

/// The size that the largest is compared with.
const BASE: usize = 100;

/// The largest ratio of the costs of a unit that still is the cost of a unit.
pub(super) const MOST_GROWTH: f64 = 2.0;

impl Row {
    /// A row of sizes from a hundred, in nanoseconds.
    pub(super) const fn new(
        name: &'static str,
        what: &'static str,
        sizes: &'static [usize],
        sample: fn(Plan, usize) -> Samples,
    ) -> Self {
        Row { name, what, sizes, counted: Some(3_000), asked: None, unit: "ns", sample }
    }

    /// With a cost of a unit that is asked for at the largest size.
    pub(super) const fn asked(self, cost: f64) -> Self {
        Row { asked: Some(cost), ..self }
    }

    /// With another largest size at which steps are counted.
    pub(super) const fn counted_to(self, size: usize) -> Self {
        Row { counted: Some(size), ..self }
    }

    /// The size whose cost is the measure: 100, or the smallest where sizes end soon after that.
    pub(super) fn base(&self) -> usize {
        let is_base = |size: &&usize| **size == BASE && self.largest() > 2 * BASE;
        self.sizes.iter().find(is_base).or(self.sizes.first()).copied().unwrap_or(BASE)
    }

    /// The largest size.
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
