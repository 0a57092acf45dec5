//! What windows hold, and how it is updated.
#![allow(unsafe_code, reason = "constants of MPI")]

use bytemuck::Pod;

use crate::mpi::ffi;

/// A number that a window can hold.
pub trait Element: Pod + Send + Sync + sealed::Datatype {}

mod sealed {
    use crate::mpi::ffi;

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

/// What becomes of an element that is updated with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// It stays: an atomic read.
    Keep,
    /// The value: an atomic write.
    Replace,
    /// The sum of both.
    Sum,
    /// The product of both.
    Product,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// Bits that both have. Not of floats.
    And,
    /// Bits that one has. Not of floats.
    Or,
    /// Bits that only one has. Not of floats.
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
