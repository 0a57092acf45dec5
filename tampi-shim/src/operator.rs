//! Operators of reductions.
//!
//! An [`Operator`] is one of the built-in types of this module or any function of two elements.
//! It should be associative; it need not be commutative, as operands always stay in the order of
//! their ranks. Sums of floats are not associative, so the order in which a reduction folds is
//! fixed: see [`Communicator::allreduce`](crate::Communicator::allreduce).

use talpf_runtime::operator::Operator as Combine;
pub use talpf_runtime::operator::{And, Max, Min, Or, Product, Sum, Xor};

use crate::located::Located;

/// A binary operator of a reduction. The left operand is the one of the lower ranks.
pub trait Operator<T>: Send + Sync + 'static {
    /// Combines two operands.
    ///
    /// **Panics**: a panic ends the collective with an error at all ranks.
    fn apply(&self, left: T, right: T) -> T;
}

impl<T, F: Fn(T, T) -> T + Send + Sync + 'static> Operator<T> for F {
    #[inline]
    fn apply(&self, left: T, right: T) -> T {
        self(left, right)
    }
}

/// Applies an operator element by element to slices of equal lengths.
pub(crate) trait Fold<T>: Send + Sync {
    /// `left = left op right`.
    fn fold_left(&self, left: &mut [T], right: &[T]);
    /// `right = left op right`.
    fn fold_right(&self, left: &[T], right: &mut [T]);
}

impl<T: Copy, O: Operator<T>> Fold<T> for O {
    fn fold_left(&self, left: &mut [T], right: &[T]) {
        left.iter_mut().zip(right).for_each(|(left, right)| *left = self.apply(*left, *right));
    }

    fn fold_right(&self, left: &[T], right: &mut [T]) {
        left.iter().zip(right).for_each(|(left, right)| *right = self.apply(*left, *right));
    }
}

/// A primitive number.
pub trait Number: sealed::Number {}

pub(crate) mod sealed {
    /// Arithmetic that the operators use.
    pub trait Number: Copy + PartialOrd {
        const ZERO: Self;
        const ONE: Self;
        /// Returns `true` for a number with a negative sign, `-0.0` among them.
        fn is_negative(self) -> bool;
    }
}

macro_rules! numbers {
    ($($number:ty: $zero:literal, $one:literal, $is_negative:expr;)*) => {$(
        impl sealed::Number for $number {
            const ZERO: Self = $zero;
            const ONE: Self = $one;

            #[inline]
            fn is_negative(self) -> bool {
                $is_negative(self)
            }
        }

        impl Number for $number {}
    )*};
}

macro_rules! integers {
    ($($integer:ident)*) => {
        numbers! {$($integer: 0, 1, |number| number < 0 as $integer;)*}
    };
}

integers! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize }
numbers! {
    f32: 0.0, 1.0, f32::is_sign_negative;
    f64: 0.0, 1.0, f64::is_sign_negative;
}

/// Takes operators of the runtime, so that tasks and ranks reduce by the same rule.
macro_rules! of_the_runtime {
    ($($name:ident)*) => {$(
        impl<T> Operator<T> for $name
        where
            $name: Combine<T>,
        {
            #[inline]
            fn apply(&self, mut left: T, right: T) -> T {
                <$name as Combine<T>>::combine(&mut left, right);
                left
            }
        }
    )*};
}

of_the_runtime! { Sum Product Min Max And Or Xor }

macro_rules! logical {
    ($($(#[$doc:meta])* $name:ident = $apply:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        impl<T: Number> Operator<T> for $name {
            #[inline]
            fn apply(&self, left: T, right: T) -> T {
                let apply: fn(bool, bool) -> bool = $apply;
                if apply(left != T::ZERO, right != T::ZERO) { T::ONE } else { T::ZERO }
            }
        }
    )*};
}

logical! {
    /// Logical and: 1 if both operands are not 0, otherwise 0.
    LogicalAnd = |left, right| left && right;
    /// Logical or: 1 if any operand is not 0, otherwise 0.
    LogicalOr = |left, right| left || right;
    /// Logical exclusive or: 1 if exactly one operand is not 0, otherwise 0.
    LogicalXor = |left, right| left != right;
}

/// Minimum with its location, by the order of [`Min`]; of equal values and of several NaN the one
/// with the smaller index.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinLocation;

/// Maximum with its location, by the order of [`Max`]; of equal values and of several NaN the one
/// with the smaller index.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxLocation;

/// Returns `left`, or `right` if it is better or equal at a smaller index. A NaN is better than any
/// number, and `is_better` compares numbers.
#[inline]
fn better<T: Number>(
    left: Located<T>,
    right: Located<T>,
    is_better: impl Fn(T, T) -> bool,
) -> Located<T> {
    let is_nan = |value: T| value.partial_cmp(&value).is_none();
    let before = |one: T, other: T| !is_nan(other) && (is_nan(one) || is_better(one, other));
    let same = !before(left.value, right.value) && right.index < left.index;
    if before(right.value, left.value) || same { right } else { left }
}

impl<T: Number> Operator<Located<T>> for MinLocation {
    #[inline]
    fn apply(&self, left: Located<T>, right: Located<T>) -> Located<T> {
        better(left, right, |one, other| {
            one < other || one == other && one.is_negative() && !other.is_negative()
        })
    }
}

impl<T: Number> Operator<Located<T>> for MaxLocation {
    #[inline]
    fn apply(&self, left: Located<T>, right: Located<T>) -> Located<T> {
        better(left, right, |one, other| {
            one > other || one == other && !one.is_negative() && other.is_negative()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_around() {
        assert_eq!(Sum.apply(u8::MAX, 2), 1);
        assert_eq!(Product.apply(i32::MAX, 2), -2);
    }

    #[test]
    fn a_nan_is_the_minimum_and_the_maximum_and_zeros_have_an_order() {
        for (left, right) in [(f64::NAN, 1.0), (1.0, f64::NAN)] {
            assert!(f64::is_nan(Min.apply(left, right)) && f64::is_nan(Max.apply(left, right)));
        }
        for (left, right) in [(0.0f64, -0.0), (-0.0, 0.0)] {
            assert_eq!(Min.apply(left, right).to_bits(), (-0.0f64).to_bits());
            assert_eq!(Max.apply(left, right).to_bits(), 0.0f64.to_bits());
        }
        let at = |value: f64, index| Located { value, index };
        assert_eq!(MinLocation.apply(at(f64::NAN, 7), at(1.0, 3)).index, 7);
        assert_eq!(MaxLocation.apply(at(f64::NAN, 7), at(f64::NAN, 3)).index, 3);
        assert_eq!(MinLocation.apply(at(0.0, 3), at(-0.0, 7)).index, 7);
        assert_eq!(MaxLocation.apply(at(-0.0, 3), at(0.0, 7)).index, 7);
    }

    #[test]
    fn logical_operators_give_truth_values() {
        assert_eq!((LogicalAnd.apply(4, 2), LogicalAnd.apply(4, 0)), (1, 0));
        assert_eq!((LogicalOr.apply(0.0, 2.5), LogicalOr.apply(0.0, 0.0)), (1.0, 0.0));
        assert_eq!((LogicalXor.apply(7u8, 9), LogicalXor.apply(7u8, 0)), (0, 1));
    }

    #[test]
    fn equal_values_keep_the_smaller_index() {
        let at = |value: f64, index| Located { value, index };
        assert_eq!(MinLocation.apply(at(1.0, 7), at(1.0, 3)), at(1.0, 3));
        assert_eq!(MaxLocation.apply(at(1.0, 2), at(4.0, 3)), at(4.0, 3));
    }
}
