//! Task labels in one word, so that reports may read them while records are reused.
#![allow(unsafe_code, reason = "rebuilds a `&'static str` from the word it was packed into")]

use std::sync::atomic::{AtomicU64, Ordering};

const LENGTH_BITS: u32 = 16;

/// A `&'static str` as 48 bits of address and 16 bits of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Label(u64);

impl Label {
    #[inline]
    pub(crate) fn new(text: &'static str) -> Self {
        let length = if text.len() < 1 << LENGTH_BITS { text.len() } else { 0 };
        let address = text.as_ptr().expose_provenance() as u64;
        Label(address << LENGTH_BITS | length as u64)
    }

    pub(crate) fn text(self) -> &'static str {
        let length = (self.0 & ((1 << LENGTH_BITS) - 1)) as usize;
        if length == 0 {
            return "";
        }
        let start = std::ptr::with_exposed_provenance::<u8>((self.0 >> LENGTH_BITS) as usize);
        // SAFETY: a `Label` is only made by `new` (or loaded whole from an atomic one was stored
        // to), so address and length are those of one `&'static str`; user addresses have 48 bits.
        let bytes = unsafe { std::slice::from_raw_parts(start, length) };
        // SAFETY: they are the bytes of a `str`.
        unsafe { std::str::from_utf8_unchecked(bytes) }
    }
}

/// An atomic word with a label.
pub(crate) struct AtomicLabel(AtomicU64);

impl AtomicLabel {
    pub(crate) const fn empty() -> Self {
        AtomicLabel(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn store(&self, label: Label) {
        self.0.store(label.0, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn load(&self) -> Label {
        Label(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_label_comes_back() {
        for text in ["", "x", "stencil", "Übertragung"] {
            assert_eq!(Label::new(text).text(), text);
        }
    }
}
