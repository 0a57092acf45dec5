//! Check of the limits of a problem.

use std::ops::RangeInclusive;

use crate::Error;

/// Checks that a problem is made of numbers within all limits, and that one beyond a limit is named. All
/// others are 1.
pub(crate) fn assert_limits<P, const N: usize>(
    names: [&str; N],
    limits: [RangeInclusive<usize>; N],
    new: impl Fn([usize; N]) -> Result<P, Error>,
) {
    for (index, (name, limits)) in names.into_iter().zip(limits).enumerate() {
        let with = |value: usize| {
            let mut numbers = [1; N];
            numbers[index] = value;
            new(numbers)
        };
        assert!(with(*limits.start()).is_ok() && with(*limits.end()).is_ok(), "{name}");
        for bad in [limits.start() - 1, limits.end() + 1] {
            let Err(error) = with(bad) else { panic!("{name} accepts {bad}") };
            let error = error.to_string();
            assert!(error.starts_with(&format!("{name} is {bad}, expected ")), "{error}");
        }
    }
}
