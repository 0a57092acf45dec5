//! Shapes of what a row measures: one group of many units, or many groups of few.

/// Number of groups, and of units of each.
///
/// A hundred units fit into the fastest cache, a hundred thousand do not. So a cost per unit that is
/// the same in every respect is still higher for the larger number. A row whose units can be divided
/// compares the largest number of units in one group with as many in groups of a hundred, which need
/// the same memory: what is left is growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) groups: usize,
    /// Units of each group.
    pub(super) size: usize,
}

impl Shape {
    /// Makes the shape of one group.
    pub(super) const fn one(size: usize) -> Self {
        Shape { groups: 1, size }
    }

    /// Returns the number of units of all groups.
    pub(super) const fn units(self) -> usize {
        self.groups * self.size
    }

    /// Iterates over the groups, as ranges of units.
    pub(super) fn each(self) -> impl Iterator<Item = std::ops::Range<usize>> {
        (0..self.groups).map(move |group| group * self.size..(group + 1) * self.size)
    }
}

/// Number of units that a program gets, in one group or several.
pub(super) trait Amount: Copy + Send + 'static {
    /// Returns the number of units.
    fn count(self) -> usize;
}

impl Amount for usize {
    fn count(self) -> usize {
        self
    }
}

impl Amount for Shape {
    fn count(self) -> usize {
        self.units()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_consecutive_units() {
        let shape = Shape { groups: 3, size: 100 };
        assert!(shape.each().eq([0..100, 100..200, 200..300]));
        assert_eq!((shape.units(), shape.count(), Shape::one(7).count()), (300, 300, 7));
    }
}
