//! Datatypes of MPI for byte layouts. A count of MPI is an `int`, so longer messages need a derived
//! datatype.
#![allow(unsafe_code, reason = "calls MPI")]

use std::ffi::c_int;

use talpf_runtime::ByteLayout;

use super::call::check;
use super::{Refused, ffi};

/// Length of the pieces of a message that is longer than a count can be, in bytes.
const LONGEST: usize = 1 << 30;

/// Returns the datatype of one byte.
pub(super) fn byte() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_UINT8_T }
}

/// Shape of a message: a number of elements of a datatype.
pub(crate) struct Shape {
    pub(super) count: c_int,
    pub(super) datatype: ffi::MPI_Datatype,
    made: bool,
}

impl Shape {
    /// Returns the shape of the bytes of `layout`.
    #[inline]
    pub(crate) fn of(layout: ByteLayout) -> Result<Shape, Refused> {
        if layout.rows == 1 || layout.bytes() == 0 {
            return Shape::contiguous(layout.bytes() as usize);
        }
        let row = Shape::contiguous(layout.row_bytes)?;
        Shape::strided(layout.rows, &row, layout.stride_bytes)
    }

    /// Returns the shape of the elements of `size` bytes of `layout`.
    pub(super) fn of_elements(
        layout: ByteLayout,
        size: usize,
        datatype: ffi::MPI_Datatype,
    ) -> Result<Shape, Refused> {
        if layout.rows == 1 || layout.bytes() == 0 {
            return Shape::elements(layout.bytes() as usize / size, datatype);
        }
        let row = Shape::elements(layout.row_bytes / size, datatype)?;
        Shape::strided(layout.rows, &row, layout.stride_bytes)
    }

    /// Returns the shape of `count` contiguous elements.
    pub(super) fn elements(count: usize, datatype: ffi::MPI_Datatype) -> Result<Shape, Refused> {
        Ok(Shape { count: number(count)?, datatype, made: false })
    }

    /// Returns the shape of contiguous bytes.
    #[inline]
    pub(crate) fn contiguous(bytes: usize) -> Result<Shape, Refused> {
        match c_int::try_from(bytes) {
            Ok(count) => Ok(Shape { count, datatype: byte(), made: false }),
            Err(_) => Shape::long(bytes),
        }
    }

    /// Returns the shape of `rows` rows, whose first bytes are `stride_bytes` apart.
    fn strided(rows: usize, row: &Shape, stride_bytes: usize) -> Result<Shape, Refused> {
        let (count, stride) = (number(rows)?, stride_bytes as ffi::MPI_Aint);
        let mut made = byte();
        // SAFETY: the row's type lives; a new handle is written.
        let code = unsafe {
            ffi::MPI_Type_create_hvector(count, row.count, stride, row.datatype, &mut made)
        };
        check("MPI_Type_create_hvector", code)?;
        Shape::commit(made)
    }

    /// Returns the shape of more bytes than a count can be: whole pieces and a rest.
    #[cold]
    fn long(bytes: usize) -> Result<Shape, Refused> {
        let pieces = bytes / LONGEST;
        let mut piece = byte();
        // SAFETY: a new handle is written.
        let code = unsafe { ffi::MPI_Type_contiguous(LONGEST as c_int, byte(), &mut piece) };
        check("MPI_Type_contiguous", code)?;
        // Freed when this function ends; the derived type keeps a reference.
        let piece = Shape { count: 1, datatype: piece, made: true };
        let counts = [number(pieces)?, (bytes % LONGEST) as c_int];
        let places = [0, (pieces * LONGEST) as ffi::MPI_Aint];
        let types = [piece.datatype, byte()];
        let mut made = byte();
        let (counts, places, types) = (counts.as_ptr(), places.as_ptr(), types.as_ptr());
        // SAFETY: three arrays of two elements; a new handle is written.
        let code = unsafe { ffi::MPI_Type_create_struct(2, counts, places, types, &mut made) };
        check("MPI_Type_create_struct", code)?;
        Shape::commit(made)
    }

    fn commit(datatype: ffi::MPI_Datatype) -> Result<Shape, Refused> {
        let mut shape = Shape { count: 1, datatype, made: true };
        // SAFETY: a type that was made above.
        check("MPI_Type_commit", unsafe { ffi::MPI_Type_commit(&mut shape.datatype) })?;
        Ok(shape)
    }
}

impl Drop for Shape {
    #[inline]
    fn drop(&mut self) {
        if self.made {
            // SAFETY: made here and freed once; MPI keeps it for the operations that use it.
            unsafe { ffi::MPI_Type_free(&mut self.datatype) };
        }
    }
}

fn number(value: usize) -> Result<c_int, Refused> {
    c_int::try_from(value).map_err(|_| Refused {
        call: "MPI_Type_create_struct",
        code: 0,
        reason: format!("{value} is more than a count of MPI can be"),
    })
}
