//! Checksum that every task leaves: of the previous value of its cell, its position and its inputs.
//!
//! Two rows of cells alternate, so a cell holds the checksum of the same point two steps before:
//! the last two rows depend on every task, on its inputs and on the order of execution.

/// Adds `value` to a checksum. The order of values matters.
#[inline]
pub(super) fn fold(sum: u64, value: u64) -> u64 {
    let sum = (sum ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    sum ^ (sum >> 32)
}

/// Returns the initial checksum of the task of `point` in `step`, given the previous value of its
/// cell.
#[inline]
pub(super) fn begin(cell: u64, step: usize, point: usize) -> u64 {
    fold(cell, (step as u64) << 32 | point as u64)
}
