//! The byte layout of elements in memory, for layers that move bytes.
#![allow(unsafe_code, reason = "an address may change threads with the operation that uses it")]

/// The bytes of a guard or a buffer: `rows` rows of `row_bytes`, `stride_bytes` apart.
#[derive(Clone, Copy, Debug)]
pub struct ByteLayout {
    /// Address of the first byte.
    pub first: *mut u8,
    /// Number of rows; 1 if no byte lies between those of the elements.
    pub rows: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Bytes from the beginning of one row to that of the next.
    pub stride_bytes: usize,
    /// Number of elements.
    pub len: usize,
}

// SAFETY: a `ByteLayout` is an address; each user of it holds the guard or buffer that it came
// from.
unsafe impl Send for ByteLayout {}

impl ByteLayout {
    /// Returns the layout of no elements.
    pub fn of_nothing() -> Self {
        Self::of_rows(std::ptr::NonNull::<u8>::dangling().as_ptr(), (1, 0), 0)
    }

    /// Returns the layout of `rows x cols` elements, with `stride` elements from one row to the
    /// next.
    #[inline]
    pub(crate) fn of_rows<T>(first: *mut T, (rows, cols): (usize, usize), stride: usize) -> Self {
        let is_contiguous = rows <= 1 || cols == stride;
        let (rows, cols, stride) =
            if is_contiguous { (1, rows * cols, 0) } else { (rows, cols, stride) };
        ByteLayout {
            first: first.cast(),
            rows,
            row_bytes: cols * size_of::<T>(),
            stride_bytes: stride * size_of::<T>(),
            len: rows * cols,
        }
    }

    /// Returns the layout of consecutive elements.
    #[inline]
    pub fn of_slice<T>(elements: &mut [T]) -> Self {
        ByteLayout::of_rows(elements.as_mut_ptr(), (1, elements.len()), 0)
    }

    /// Returns the number of bytes of all rows.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.rows as u64 * self.row_bytes as u64
    }

    /// Returns `true` if no byte lies between those of the elements.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.rows == 1
    }

    /// Returns the number of bytes from the first one to the end of the last row.
    #[inline]
    pub fn span_bytes(&self) -> usize {
        self.rows.saturating_sub(1) * self.stride_bytes + self.row_bytes
    }
}

#[cfg(all(test, not(any(talpf_loom, talpf_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_gap_are_one_row() {
        let mut cells = [0u32; 12];
        let sizes = |shape: (usize, usize), stride: usize| {
            let layout = ByteLayout::of_rows([0u32; 12].as_mut_ptr(), shape, stride);
            let ByteLayout { rows, row_bytes, stride_bytes, len, .. } = layout;
            assert_eq!(layout.bytes(), 4 * len as u64);
            (rows, row_bytes, stride_bytes, len, layout.span_bytes())
        };
        assert_eq!(sizes((2, 3), 5), (2, 12, 20, 6, 32));
        assert_eq!(sizes((2, 3), 3), (1, 24, 0, 6, 24));
        assert_eq!(sizes((1, 3), 5), (1, 12, 0, 3, 12));
        assert_eq!(sizes((0, 3), 5), (1, 0, 0, 0, 0));
        assert_eq!(ByteLayout::of_slice(&mut cells).bytes(), 48);
        assert_eq!(ByteLayout::of_slice(&mut [(); 7]).len, 7);
    }
}
