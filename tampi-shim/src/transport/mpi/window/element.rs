//! Elements of windows and their atomic updates.
#![allow(unsafe_code, reason = "constants of MPI")]

use bytemuck::Pod;

use crate::transport::mpi::ffi;

/// A number that a window can hold.
pub trait Element: Pod + Send + Sync + sealed::Datatype {}

mod sealed {
    use crate::transport::mpi::ffi;

    pub trait Datatype {
        #[doc(hidden)]
        fn datatype() -> ffi::MPI_Datatype;
    }
}

macro_rules! elements {
    ($($element:ty: $datatype:ident,)*) => {$(
        impl sealed::Datatype for $element {
            fn datatype() -> ffi::MPI_Datatype {
                // SAFETY: a constant of the library.
                unsafe { ffi::$datatype }
            }
        }

        impl Element for $element {}
    )*};
}

elements! {
    i32: RSMPI_INT32_T,
    u32: RSMPI_UINT32_T,
    i64: RSMPI_INT64_T,
    u64: RSMPI_UINT64_T,
    f32: RSMPI_FLOAT,
    f64: RSMPI_DOUBLE,
}

/// Atomic update of an element with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Keeps the element: an atomic read.
    Keep,
    /// Replaces the element by the value: an atomic write.
    Replace,
    /// Adds the value.
    Sum,
    /// Multiplies by the value.
    Product,
    /// Takes the minimum of both. MPI leaves open which of them with NaN, or of zeros of both signs.
    Min,
    /// Takes the maximum of both; with NaN and of zeros as [`Update::Min`].
    Max,
    /// Bitwise and. Not for floats.
    And,
    /// Bitwise or. Not for floats.
    Or,
    /// Bitwise exclusive or. Not for floats.
    Xor,
}

unsafe extern "C" {
    safe fn tampi_replace() -> ffi::MPI_Op;
    safe fn tampi_no_op() -> ffi::MPI_Op;
}

impl Update {
    pub(super) fn operation(self) -> ffi::MPI_Op {
        match self {
            Update::Keep => tampi_no_op(),
            Update::Replace => tampi_replace(),
            // SAFETY: a constant of the library.
            Update::Sum => unsafe { ffi::RSMPI_SUM },
            // SAFETY: a constant of the library.
            Update::Product => unsafe { ffi::RSMPI_PROD },
            // SAFETY: a constant of the library.
            Update::Min => unsafe { ffi::RSMPI_MIN },
            // SAFETY: a constant of the library.
            Update::Max => unsafe { ffi::RSMPI_MAX },
            // SAFETY: a constant of the library.
            Update::And => unsafe { ffi::RSMPI_BAND },
            // SAFETY: a constant of the library.
            Update::Or => unsafe { ffi::RSMPI_BOR },
            // SAFETY: a constant of the library.
            Update::Xor => unsafe { ffi::RSMPI_BXOR },
        }
    }
}
