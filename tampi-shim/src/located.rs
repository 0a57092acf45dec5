//! Values with their locations, for reductions by minimum or maximum.
#![allow(unsafe_code, reason = "says which of these types are plain bytes")]

use bytemuck::{Pod, Zeroable};

/// A value and its location, the operand of [`MinLocation`](crate::operator::MinLocation) and
/// [`MaxLocation`](crate::operator::MaxLocation).
///
/// Messages can carry it with values of 8 bytes: `f64`, `i64` and `u64`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Location of the value: a rank, or an index of an array.
    pub index: u64,
}

macro_rules! plain {
    ($($value:ty)*) => {$(
        // SAFETY: both fields are 8 bytes, which may be zero.
        unsafe impl Zeroable for Located<$value> {}
        // SAFETY: both fields are plain and of 8 bytes, so with `repr(C)` there is no padding.
        unsafe impl Pod for Located<$value> {}
    )*};
}

plain! { f64 i64 u64 }
