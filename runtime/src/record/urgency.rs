//! The urgency of a task: priority and cost in one number, which orders ready tasks.

/// The urgency of a task: a greater one runs earlier. 0 is a plain task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Urgency(i32);

/// Number of bits of the magnitude of the cost, below those of the priority.
const COST_BITS: u32 = 6;
const COST: i32 = (1 << COST_BITS) - 1;

impl Urgency {
    #[inline]
    pub(crate) const fn from_bits(bits: i32) -> Self {
        Urgency(bits)
    }

    #[inline]
    pub(crate) const fn bits(self) -> i32 {
        self.0
    }

    /// Sets the priority, clamped to the representable range.
    #[inline]
    pub(crate) fn with_priority(self, priority: i32) -> Self {
        let priority = priority.clamp(i32::MIN >> COST_BITS, i32::MAX >> COST_BITS);
        Urgency(priority << COST_BITS | self.0 & COST)
    }

    /// Sets the cost, by its order of magnitude to the base of 2.
    #[inline]
    pub(crate) fn with_cost(self, cost_ns: u64) -> Self {
        let magnitude = (u64::BITS - cost_ns.leading_zeros()).min(COST as u32);
        Urgency(self.0 & !COST | magnitude as i32)
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    fn urgency(priority: i32, cost_ns: u64) -> Urgency {
        Urgency::default().with_cost(cost_ns).with_priority(priority)
    }

    #[test]
    fn priority_comes_before_cost() {
        let sorted = [
            urgency(i32::MIN, u64::MAX),
            urgency(-1, 0),
            urgency(-1, u64::MAX),
            urgency(0, 0),
            urgency(0, 1),
            urgency(0, 1_000),
            urgency(0, u64::MAX),
            urgency(1, 0),
            urgency(i32::MAX, 0),
        ];
        assert!(sorted.is_sorted_by(|a, b| a < b), "{sorted:?}");
        assert_eq!(urgency(0, 0).bits(), 0);
        assert!(urgency(-1, u64::MAX).bits() < 0);
    }

    #[test]
    fn either_can_be_changed() {
        assert_eq!(urgency(7, 100).with_priority(-3), urgency(-3, 100));
        assert_eq!(urgency(7, 100).with_cost(0), urgency(7, 0));
    }
}
