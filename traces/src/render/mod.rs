//! Pictures of a trace: a view over time, with a row for each worker, rank or cpu.
//!
//! A single pass over the records fills `bins`, a cell for each row and column of pixels, whose colour is
//! that of the value shown longest in it. A `picture` of rectangles, lines and texts is made of
//! them, and written as SVG or PNG.

mod bins;
mod drawing;
mod format;
mod palette;
mod picture;
mod png_file;
mod svg;
mod timeline;
mod view;

use std::path::Path;

use crate::error::Result;
use crate::paraver::Reader;
use drawing::Drawing;

pub(crate) use svg::{escaped, hex};
pub(crate) use timeline::Timeline;

pub use format::Format;
pub use picture::Picture;
pub use view::{Rows, View};

/// Columns of pixels of a picture for the time shown.
const COLUMNS: usize = 1_400;
/// Largest number of columns of a timeline.
const MOST_COLUMNS: usize = 16_000;
/// Largest number of cells of all timelines with more columns than a picture has.
const CELLS: usize = 800_000;

/// Contents of a picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenderOptions {
    /// Value that is drawn over time.
    pub view: View,
    /// Objects that have a row each.
    pub rows: Rows,
    /// First time that is shown.
    pub from_ns: u64,
    /// Time after the last that is shown; `None` for the end of the trace.
    pub to_ns: Option<u64>,
    /// Title of the picture.
    pub title: String,
}

/// Draws the trace at `prv`, which gzip may have compressed.
///
/// **Errors**: those of the files; [`BadRecord`](crate::Error::BadRecord) at the first line that Paraver
/// would refuse or misread; [`NoTime`](crate::Error::NoTime) if no time of the trace is to be shown.
pub fn render(prv: impl AsRef<Path>, options: &RenderOptions) -> Result<Picture> {
    let mut reader = Reader::open(prv)?;
    let shown = reader.part(options.from_ns, options.to_ns)?;
    let mut drawing = Drawing::new(&reader, options, shown, COLUMNS);
    let lost = reader.read(|record| drawing.record(record))?;
    Ok(drawing.finish(&reader, &lost))
}

/// Draws views of the trace at `prv`, in one pass over its records, in more columns than [`render()`]
/// as far as that many cells fit in memory, for a page that zooms.
///
/// **Errors**: as [`render()`].
pub(crate) fn timelines(prv: &Path, views: &[View]) -> Result<Vec<Timeline>> {
    let mut reader = Reader::open(prv)?;
    let shown = reader.part(0, None)?;
    let rows = reader.ranks_of_rows().len().max(1);
    let columns = (CELLS / views.len() / rows).clamp(COLUMNS, MOST_COLUMNS);
    let options = |view: &View| RenderOptions { view: *view, ..RenderOptions::default() };
    let options: Vec<RenderOptions> = views.iter().map(options).collect();
    let drawing = |options| Drawing::new(&reader, options, shown.clone(), columns);
    let mut drawings: Vec<Drawing<'_>> = options.iter().map(drawing).collect();
    let lost = reader.read(|record| {
        drawings.iter_mut().for_each(|drawing| drawing.record(record));
    })?;
    Ok(drawings.into_iter().map(|drawing| drawing.timeline(&reader, &lost)).collect())
}
