//! Operators of reductions, which combine two values, and their identities.
//!
//! ```
//! use talpf_runtime::operator::{Operator, Sum};
//! use talpf_runtime::{Array, Config, Runtime};
//!
//! /// The value farthest from zero.
//! struct Farthest;
//!
//! impl Operator<f64> for Farthest {
//!     fn identity() -> f64 {
//!         0.0
//!     }
//!     fn combine(into: &mut f64, from: f64) {
//!         if from.abs() > into.abs() {
//!             *into = from;
//!         }
//!     }
//! }
//!
//! let runtime = Runtime::new(Config::default())?;
//! let values = Array::new(&runtime, vec![1.0, -4.0, 2.0, 3.0], 1)?;
//! let far = Array::new(&runtime, vec![0.0], 1)?;
//! let sum = Array::new(&runtime, vec![0.0], 1)?;
//! for tile in 0..values.tiles() {
//!     let task = runtime.task("both").input(&values.tile(tile));
//!     let task = task.reduction(&far.all(), Farthest).reduction(&sum.all(), Sum);
//!     task.spawn(|values, mut far, mut sum| {
//!         Farthest::combine(&mut far[0], values[0]);
//!         sum[0] += values[0];
//!     })?;
//! }
//! let read = runtime.task("read").input(&far.all()).input(&sum.all());
//! let read = read.run(|far, sum| (far[0], sum[0]))?;
//! assert_eq!(runtime.block_on(read)??, (-4.0, 2.0));
//! # Ok::<(), talpf_runtime::Error>(())
//! ```

use std::ops::{Add, BitAnd, BitOr, BitXor, Mul};

/// An operator that combines the private copies of a reduction over elements of type `T`.
///
/// The result is determined if `combine` is associative and commutative; if it is not, as with sums
/// of floats, [`InOrder`] makes the result determined. A task fails if its operator panics.
pub trait Operator<T>: Send + Sync + 'static {
    /// `true` if the tasks' copies are combined in the order of the spawns: see [`InOrder`].
    const IN_ORDER: bool = false;

    /// Returns the identity, with which private copies begin.
    fn identity() -> T;

    /// Combines `from` into `into`.
    fn combine(into: &mut T, from: T);
}

/// An operator that combines in the order of the spawns: the result is, bit for bit, that of
/// running the tasks one after another and combining the copy of each at its end.
///
/// **Cost**: a private copy for every task; those that end early keep theirs until the tasks
/// spawned before them have ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct InOrder<O>(pub O);

impl<T, O: Operator<T>> Operator<T> for InOrder<O> {
    const IN_ORDER: bool = true;

    fn identity() -> T {
        O::identity()
    }

    #[inline]
    fn combine(into: &mut T, from: T) {
        O::combine(into, from);
    }
}

macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;
    )*};
}

operators! {
    /// The sum; integers wrap.
    Sum
    /// The product; integers wrap.
    Product
    /// The minimum; of floats that of IEEE 754-2019: NaN if any operand is, and -0.0 is below +0.0.
    Min
    /// The maximum; of floats that of IEEE 754-2019: NaN if any operand is, and +0.0 is above -0.0.
    Max
    /// The conjunction, bit by bit.
    And
    /// The disjunction, bit by bit.
    Or
    /// The exclusive disjunction, bit by bit.
    Xor
}

macro_rules! operate {
    ($operator:ident on $($type:ty)*: $identity:expr, $combine:path) => {$(
        impl Operator<$type> for $operator {
            fn identity() -> $type {
                $identity
            }

            #[inline]
            fn combine(into: &mut $type, from: $type) {
                *into = $combine(*into, from);
            }
        }
    )*};
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        operate!(Sum on $type: 0, $type::wrapping_add);
        operate!(Product on $type: 1, $type::wrapping_mul);
        operate!(Min on $type: $type::MAX, Ord::min);
        operate!(Max on $type: $type::MIN, Ord::max);
        operate!(And on $type: !0, BitAnd::bitand);
        operate!(Or on $type: 0, BitOr::bitor);
        operate!(Xor on $type: 0, BitXor::bitxor);
    )*};
}

/// Defines `minimum` and `maximum` of IEEE 754-2019: associative, with the infinities as identities
/// even if all operands are NaN, which those that prefer numbers are not.
macro_rules! extrema {
    ($($module:ident: $compare:tt, $negative:literal;)*) => {$(
        mod $module {
            extrema!(@ f32 $compare $negative);
            extrema!(@ f64 $compare $negative);
        }
    )*};
    (@ $type:ident $compare:tt $negative:literal) => {
        #[inline]
        pub(super) fn $type(left: $type, right: $type) -> $type {
            let is_zero_kept = left == right && left.is_sign_negative() == $negative;
            if left $compare right || is_zero_kept || left.is_nan() { left } else { right }
        }
    };
}

extrema! {
    minimum: <, true;
    maximum: >, false;
}

macro_rules! floats {
    ($($type:ident)*) => {$(
        // The zero that keeps the sign of a zero.
        operate!(Sum on $type: -0.0, Add::add);
        operate!(Product on $type: 1.0, Mul::mul);
        operate!(Min on $type: $type::INFINITY, minimum::$type);
        operate!(Max on $type: $type::NEG_INFINITY, maximum::$type);
    )*};
}

integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
floats!(f32 f64);
operate!(And on bool: true, BitAnd::bitand);
operate!(Or on bool: false, BitOr::bitor);
operate!(Xor on bool: false, BitXor::bitxor);
