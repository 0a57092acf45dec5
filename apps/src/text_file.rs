//! Input files of numbers: fields separated by blanks; `#` starts a comment; empty lines are
//! ignored.
//! Anything else is an error that names the line, the field, its text and the valid values.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::Error;

/// Reads the text of a file.
///
/// **Errors**: [`Error::Read`] if the file cannot be read or is longer than `longest` bytes.
pub(crate) fn read(path: &Path, longest: u64) -> Result<String, Error> {
    let read = || -> io::Result<String> {
        let mut text = String::new();
        let length = File::open(path)?.take(longest + 1).read_to_string(&mut text)?;
        if length as u64 > longest {
            return Err(io::Error::other(format!("longer than {longest} bytes")));
        }
        Ok(text)
    };
    read().map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Returns the non-empty lines of `text`; errors about them name `file`.
pub(crate) fn lines<'a>(file: &'a str, text: &'a str) -> impl Iterator<Item = Line<'a>> {
    text.lines().enumerate().filter_map(move |(index, text)| {
        let text = text.split('#').next().unwrap_or_default().trim();
        (!text.is_empty()).then_some(Line { file, number: index + 1, text })
    })
}

/// Returns a stand-in for the line after the last one, without text.
pub(crate) fn end<'a>(file: &'a str, text: &str) -> Line<'a> {
    Line { file, number: text.lines().count() + 1, text: "" }
}

/// Line without its comment. Only the end of a file has no text.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    file: &'a str,
    number: usize,
    pub(crate) text: &'a str,
}

impl<'a> Line<'a> {
    /// Returns the fields, if there are as many as expected.
    pub(crate) fn fields<const N: usize>(self) -> Option<[&'a str; N]> {
        let fields: Vec<&str> = self.text.split_whitespace().collect();
        fields.try_into().ok()
    }

    /// Parses `text` as a number that is `allowed`.
    pub(crate) fn number(
        self,
        field: &'static str,
        text: &str,
        allowed: impl Fn(f64) -> bool,
        limit: String,
    ) -> Result<f64, Error> {
        match text.parse() {
            Ok(number) if allowed(number) => Ok(number),
            _ => Err(self.error(field, text, limit)),
        }
    }

    pub(crate) fn error(self, field: &'static str, value: &str, limit: String) -> Error {
        const LONGEST_QUOTE: usize = 60;
        let (file, line) = (self.file.to_owned(), self.number);
        if self.text.is_empty() {
            return Error::MissingField { file, line, field, limit };
        }
        let value = value.chars().take(LONGEST_QUOTE).collect();
        Error::Field { file, line, field, value, limit }
    }
}
