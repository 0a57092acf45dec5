//! Whole numbers as arguments.

use std::ops::RangeInclusive;

/// Returns a parser of whole numbers within `limits`, for `value_parser`.
pub(super) fn number_within(
    limits: RangeInclusive<usize>,
) -> impl Fn(&str) -> Result<usize, String> + Clone {
    move |text| match text.parse() {
        Ok(number) if limits.contains(&number) => Ok(number),
        _ => Err(format!("expected a whole number from {} to {}", limits.start(), limits.end())),
    }
}
