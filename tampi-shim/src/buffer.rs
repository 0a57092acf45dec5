//! Buffers that messages are read from and written to.
#![allow(unsafe_code, reason = "an address may change threads with the operation that uses it")]

use bytemuck::Pod;
use talpf_runtime::{In, InOut, Out};

use crate::error::Error;

/// Byte layout of a buffer: `rows` rows of `row_bytes` bytes each, `stride_bytes` apart.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Layout {
    pub(crate) first: *mut u8,
    pub(crate) rows: usize,
    pub(crate) row_bytes: usize,
    pub(crate) stride_bytes: usize,
}

// SAFETY: a `Layout` is an address; whoever uses it holds the buffer that it came from.
unsafe impl Send for Layout {}

impl Layout {
    fn of_guard<T>((first, rows, cols, stride): (*const T, usize, usize, usize)) -> Self {
        let bytes = size_of::<T>();
        let contiguous = rows <= 1 || cols == stride;
        let (rows, cols, stride) =
            if contiguous { (1, rows * cols, 0) } else { (rows, cols, stride) };
        Layout {
            first: first.cast_mut().cast(),
            rows,
            row_bytes: cols * bytes,
            stride_bytes: stride * bytes,
        }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.rows as u64 * self.row_bytes as u64
    }
}

/// A buffer that a message can be read from: a guard of a region, contiguous or a rectangle, or a
/// vector.
///
/// The bytes of a buffer do not move when the buffer does. The trait cannot be implemented outside
/// of this crate.
pub trait Buffer: sealed::Memory + Send + 'static {
    /// Type of the elements.
    type Element: Pod + Send;
}

/// A buffer that a message can be written to.
pub trait BufferMut: Buffer {}

pub(crate) mod sealed {
    use super::Layout;
    use crate::error::Error;

    /// **Safety** of implementations lies in this crate: the layout is valid for reads, and for
    /// writes if the type is [`BufferMut`](super::BufferMut), while the buffer is neither used
    /// nor dropped, and does not change when the buffer moves.
    pub trait Memory {
        #[doc(hidden)]
        fn layout(&mut self) -> Layout;

        /// Disposes of the buffer of a failed operation that was to fill it, and poisons its
        /// region.
        #[doc(hidden)]
        fn undefined(self, _reason: &Error)
        where
            Self: Sized,
        {
        }
    }
}

impl<T: Pod + Send + Sync, D: 'static> sealed::Memory for In<T, D> {
    #[inline]
    fn layout(&mut self) -> Layout {
        Layout::of_guard(self.as_raw_parts())
    }
}

impl<T: Pod + Send + Sync, D: 'static> Buffer for In<T, D> {
    type Element = T;
}

macro_rules! writing_guard {
    ($guard:ident) => {
        impl<T: Pod + Send + Sync, D: 'static> sealed::Memory for $guard<T, D> {
            #[inline]
            fn layout(&mut self) -> Layout {
                let (first, rows, cols, stride) = self.as_raw_parts_mut();
                Layout::of_guard((first.cast_const(), rows, cols, stride))
            }

            #[cold]
            fn undefined(self, reason: &Error) {
                self.fail(reason.to_string());
            }
        }

        impl<T: Pod + Send + Sync, D: 'static> Buffer for $guard<T, D> {
            type Element = T;
        }

        impl<T: Pod + Send + Sync, D: 'static> BufferMut for $guard<T, D> {}
    };
}

writing_guard!(Out);
writing_guard!(InOut);

impl<T: Pod + Send> sealed::Memory for Vec<T> {
    #[inline]
    fn layout(&mut self) -> Layout {
        Layout {
            first: self.as_mut_ptr().cast(),
            rows: 1,
            row_bytes: size_of_val(self.as_slice()),
            stride_bytes: 0,
        }
    }
}

impl<T: Pod + Send> Buffer for Vec<T> {
    type Element = T;
}

impl<T: Pod + Send> BufferMut for Vec<T> {}
