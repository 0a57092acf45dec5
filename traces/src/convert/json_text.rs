//! Text of others inside JSON.

use std::fmt;

/// Text that is shown as a JSON string, with its quotes.
pub(super) struct JsonText<'a>(pub(super) &'a str);

impl fmt::Display for JsonText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                character if character.is_control() => write!(f, "\\u{:04x}", character as u32)?,
                character => write!(f, "{character}")?,
            }
        }
        f.write_str("\"")
    }
}
