//! The byte layout of the memory of guards, for the device.
#![allow(unsafe_code, reason = "views the elements of a guard as bytes")]

use bytemuck::Pod;
use ibverbs_sim::{LocalKey, ScatterGather};
use smallvec::SmallVec;
use talpf_runtime::{In, InOut, Out};

/// Registered memory, usually in one piece.
pub(super) type Entries = SmallVec<[ScatterGather; 1]>;

/// The byte layout of the memory of a guard: `rows` of `row_bytes`, `stride_bytes` apart.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct ByteLayout {
    first: *const u8,
    rows: usize,
    row_bytes: usize,
    stride_bytes: usize,
    /// Number of elements.
    pub(super) len: usize,
    pub(super) array: u64,
}

// SAFETY: a `ByteLayout` is an address; each user of it holds the guard that it came from.
unsafe impl Send for ByteLayout {}

impl ByteLayout {
    fn new<T>(array: u64, (first, rows, cols, stride): (*const T, usize, usize, usize)) -> Self {
        let bytes = size_of::<T>();
        let contiguous = rows <= 1 || cols == stride;
        let (rows, cols, stride) =
            if contiguous { (1, rows * cols, 0) } else { (rows, cols, stride) };
        ByteLayout {
            first: first.cast(),
            rows,
            row_bytes: cols * bytes,
            stride_bytes: stride * bytes,
            len: rows * cols,
            array,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows * self.row_bytes
    }

    pub(super) fn is_contiguous(&self) -> bool {
        self.rows == 1
    }

    /// Returns the first byte, and the number of bytes from there to the end of the last row.
    pub(super) fn hull(&self) -> (*const u8, usize) {
        let before_last = self.rows.saturating_sub(1) * self.stride_bytes;
        (self.first, before_last + self.row_bytes)
    }

    /// Returns the bytes of the first row of a guard with this layout.
    #[inline]
    pub(super) fn lent<'g, G: Source>(_guard: &'g G, layout: &ByteLayout) -> &'g [u8] {
        // SAFETY: the guard gives the right to read its elements while it is borrowed, and they
        // are `Pod`, so they have no padding.
        unsafe { std::slice::from_raw_parts(layout.first, layout.row_bytes) }
    }

    /// Returns the first row as an entry of a gather list.
    #[inline]
    pub(super) fn first_row(&self, key: LocalKey) -> ScatterGather {
        let (address, length) = (self.first.addr() as u64, self.row_bytes as u32);
        ScatterGather { address, length, key }
    }

    /// Returns the bytes as entries of gather lists, none longer than `longest`, cut where the other
    /// side begins a new row, after every `piece` bytes.
    pub(super) fn entries(&self, key: LocalKey, longest: usize, piece: usize) -> Entries {
        let mut entries = Entries::with_capacity(self.rows);
        let (longest, piece) = (longest.max(1), piece.max(1));
        let mut left_of_piece = piece;
        for row in 0..self.rows {
            let start = self.first.addr() + row * self.stride_bytes;
            let mut offset = 0;
            while offset < self.row_bytes {
                let length = (self.row_bytes - offset).min(longest).min(left_of_piece);
                let address = (start + offset) as u64;
                entries.push(ScatterGather { address, length: length as u32, key });
                offset += length;
                left_of_piece -= length;
                if left_of_piece == 0 {
                    left_of_piece = piece;
                }
            }
        }
        entries
    }
}

/// A guard that an operation can read from.
pub trait Source: Send + 'static {
    /// Type of the elements.
    type Element: Pod;
    #[doc(hidden)]
    fn layout(&self) -> ByteLayout;
}

/// A guard that an operation can write to.
pub trait Destination: Source {}

macro_rules! source {
    ($guard:ident) => {
        impl<T: Pod + Send + Sync, D: 'static> Source for $guard<T, D> {
            type Element = T;

            #[inline]
            fn layout(&self) -> ByteLayout {
                ByteLayout::new(self.array_id(), self.as_raw_parts())
            }
        }
    };
}

source!(In);
source!(Out);
source!(InOut);

impl<T: Pod + Send + Sync, D: 'static> Destination for Out<T, D> {}
impl<T: Pod + Send + Sync, D: 'static> Destination for InOut<T, D> {}
