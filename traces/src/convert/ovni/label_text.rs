//! Labels of ovni, which have a limit.

/// Largest number of bytes of a label, without the zero at its end.
const LIMIT: usize = 511;

/// Returns text that fits into a label.
pub(super) fn label_text(text: &str) -> String {
    text[..text.floor_char_boundary(LIMIT)].replace('\0', " ")
}
