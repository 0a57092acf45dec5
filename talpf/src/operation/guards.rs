//! The memory of guards, for the device.
#![allow(unsafe_code, reason = "views the elements of a guard as bytes")]

use std::sync::Arc;

use bytemuck::Pod;
use ibverbs_sim::{LocalKey, ScatterGather};
use smallvec::SmallVec;
use talpf_runtime::{ByteLayout, In, InOut, Out};

/// Registered memory, usually in one piece.
pub(super) type Entries = SmallVec<[ScatterGather; 1]>;

/// Returns the bytes of the first row of a guard with this layout.
#[inline]
pub(super) fn lent<'g, G: Source>(_guard: &'g G, layout: &ByteLayout) -> &'g [u8] {
    // SAFETY: the guard gives the right to read its elements while it is borrowed, and they are
    // `Pod`, so they have no padding.
    unsafe { std::slice::from_raw_parts(layout.first, layout.row_bytes) }
}

/// The number of the guard that an atomic writes its result to, for a result that does not come by the device.
pub(super) struct ResultWord(ByteLayout);

impl ResultWord {
    /// Returns the number of a guard with this layout.
    ///
    /// # Safety
    /// The guard is one of a single number of eight bytes, which may be written. Until the word is stored or dropped the
    /// guard lives, and nobody else uses the number.
    pub(super) unsafe fn new(layout: ByteLayout) -> Self {
        ResultWord(layout)
    }

    /// Stores the result.
    pub(super) fn store(self, result: u64) {
        // SAFETY: by the contract of `new`. Elements are aligned.
        unsafe { self.0.first.cast::<u64>().write(result) };
    }
}

/// Returns the first row of a guard as an entry of a gather list.
#[inline]
pub(super) fn first_row(layout: &ByteLayout, key: LocalKey) -> ScatterGather {
    let (address, length) = (layout.first.addr() as u64, layout.row_bytes as u32);
    ScatterGather { address, length, key }
}

/// Returns the bytes of a guard as entries of gather lists, none longer than `longest`, cut where
/// the other side begins a new row, after every `piece` bytes.
pub(super) fn entries(layout: &ByteLayout, key: LocalKey, longest: usize, piece: usize) -> Entries {
    let mut entries = Entries::with_capacity(layout.rows);
    let (longest, piece) = (longest.max(1), piece.max(1));
    let mut left_of_piece = piece;
    for row in 0..layout.rows {
        let start = layout.first.addr() + row * layout.stride_bytes;
        let mut offset = 0;
        while offset < layout.row_bytes {
            let length = (layout.row_bytes - offset).min(longest).min(left_of_piece);
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

/// A guard, or other memory of its own, that an operation can read from.
pub trait Source: Send + 'static {
    /// Type of the elements.
    type Element: Pod;
    #[doc(hidden)]
    fn layout(&self) -> ByteLayout;
    #[doc(hidden)]
    fn array(&self) -> u64;
}

/// A guard that an operation can write to.
pub trait Destination: Source {}

/// A guard that several operations read from.
impl<G: Source + Sync> Source for Arc<G> {
    type Element = G::Element;

    fn layout(&self) -> ByteLayout {
        (**self).layout()
    }

    fn array(&self) -> u64 {
        (**self).array()
    }
}

macro_rules! source {
    ($guard:ident) => {
        impl<T: Pod + Send + Sync, D: 'static> Source for $guard<T, D> {
            type Element = T;

            #[inline]
            fn layout(&self) -> ByteLayout {
                self.byte_layout()
            }

            fn array(&self) -> u64 {
                self.array_id()
            }
        }
    };
}

source!(In);
source!(Out);
source!(InOut);

impl<T: Pod + Send + Sync, D: 'static> Destination for Out<T, D> {}
impl<T: Pod + Send + Sync, D: 'static> Destination for InOut<T, D> {}
