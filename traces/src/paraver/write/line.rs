//! Lines of records.

use std::io::{self, Write};

use super::layout::Location;

/// Line of a record: numbers with colons between them. Formatting them through `core::fmt` would take most of
/// the time of the writer.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: Vec<u8>,
}

impl Line {
    /// Begins a line with the number of its kind of record.
    pub(super) fn begin(&mut self, kind: u8) {
        self.text.clear();
        self.digits(kind);
    }

    /// Appends a number.
    pub(super) fn number(&mut self, number: impl itoa::Integer) {
        self.text.push(b':');
        self.digits(number);
    }

    /// Appends a location: cpu, application, task and thread.
    pub(super) fn location(&mut self, Location { cpu, rank, row }: Location) {
        [cpu, 1, rank + 1, row + 1].into_iter().for_each(|number| self.number(number));
    }

    /// Writes the line.
    pub(super) fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.text.push(b'\n');
        out.write_all(&self.text)
    }

    fn digits(&mut self, number: impl itoa::Integer) {
        self.text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }
}
