//! Bytes as datatypes of MPI: counts are `int` there, so what is longer is described by a type.
#![allow(unsafe_code, reason = "calls MPI")]

use std::ffi::c_int;

use super::call::check;
use super::{Refused, ffi};
use crate::buffer::Layout;

/// Bytes a single count describes, and the length of the pieces of what is longer.
const LONGEST: usize = 1 << 30;

/// The type of one byte.
pub(super) fn byte() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_UINT8_T }
}

/// A shape of bytes: a number of elements of a type.
pub(crate) struct Shape {
    pub(super) count: c_int,
    pub(super) datatype: ffi::MPI_Datatype,
    made: bool,
}

impl Shape {
    /// The bytes that `layout` describes.
    #[inline]
    pub(crate) fn of(layout: Layout) -> Result<Shape, Refused> {
        if layout.rows == 1 || layout.bytes() == 0 {
            return Shape::contiguous(layout.bytes() as usize);
        }
        let row = Shape::contiguous(layout.row_bytes)?;
        Shape::strided(layout.rows, &row, layout.stride_bytes)
    }

    /// The elements of `size` bytes that `layout` describes.
    pub(super) fn of_elements(
        layout: Layout,
        size: usize,
        datatype: ffi::MPI_Datatype,
    ) -> Result<Shape, Refused> {
        if layout.rows == 1 || layout.bytes() == 0 {
            return Shape::elements(layout.bytes() as usize / size, datatype);
        }
        let row = Shape::elements(layout.row_bytes / size, datatype)?;
        Shape::strided(layout.rows, &row, layout.stride_bytes)
    }

    /// `count` elements in a row.
    pub(super) fn elements(count: usize, datatype: ffi::MPI_Datatype) -> Result<Shape, Refused> {
        Ok(Shape { count: number(count)?, datatype, made: false })
    }

    /// `bytes` in a row.
    #[inline]
    pub(crate) fn contiguous(bytes: usize) -> Result<Shape, Refused> {
        match c_int::try_from(bytes) {
            Ok(count) => Ok(Shape { count, datatype: byte(), made: false }),
            Err(_) => Shape::long(bytes),
        }
    }

    /// `rows`, whose starts are `stride_bytes` apart.
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

    /// Whole pieces and a rest.
    #[cold]
    fn long(bytes: usize) -> Result<Shape, Refused> {
        let pieces = bytes / LONGEST;
        let mut piece = byte();
        // SAFETY: a new handle is written.
        let code = unsafe { ffi::MPI_Type_contiguous(LONGEST as c_int, byte(), &mut piece) };
        check("MPI_Type_contiguous", code)?;
        // Freed when this function ends; a type made of it keeps what it needs.
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
