//! Buffers that messages are read from and written to.

use bytemuck::Pod;
use talpf_runtime::{ByteLayout, In, InOut, Out};

use crate::error::Error;

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
    use talpf_runtime::ByteLayout;

    use crate::error::Error;

    /// **Safety** of implementations lies in this crate: the layout is valid for reads, and for
    /// writes if the type is [`BufferMut`](super::BufferMut), while the buffer is neither used
    /// nor dropped, and does not change when the buffer moves.
    pub trait Memory {
        #[doc(hidden)]
        fn layout(&mut self) -> ByteLayout;

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
    fn layout(&mut self) -> ByteLayout {
        self.byte_layout()
    }
}

impl<T: Pod + Send + Sync, D: 'static> Buffer for In<T, D> {
    type Element = T;
}

macro_rules! writing_guard {
    ($guard:ident) => {
        impl<T: Pod + Send + Sync, D: 'static> sealed::Memory for $guard<T, D> {
            #[inline]
            fn layout(&mut self) -> ByteLayout {
                self.byte_layout()
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
    fn layout(&mut self) -> ByteLayout {
        ByteLayout::of_slice(self)
    }
}

impl<T: Pod + Send> Buffer for Vec<T> {
    type Element = T;
}

impl<T: Pod + Send> BufferMut for Vec<T> {}
