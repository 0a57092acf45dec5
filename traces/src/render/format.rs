//! Formats of files of pictures.

use std::io::{self, Write};

use super::picture::Picture;
use super::{png_file, svg};

/// Format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Vector graphics, with text that can be searched.
    Svg,
    /// Pixels.
    Png,
}

impl Picture {
    /// Writes the picture as a file of `format`.
    pub fn write(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        match format {
            Format::Svg => svg::write(self, out),
            Format::Png => png_file::write(self, out),
        }
    }
}
