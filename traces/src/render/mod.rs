//! Pictures of a trace: a view over time, with a row for each worker, rank or cpu, or a table of it.
//!
//! A `view` is a file for Paraver. By what that says, `semantic` makes values of the records, in one pass.
//! Over time they fill cells, one for each row and column of pixels: `bins` if they have names, with the
//! colour of the one shown longest, `levels` if they are numbers. A histogram or matrix sums them in a
//! `table`. A `picture` of rectangles, lines and texts is made of either, and written as SVG or PNG.

mod bins;
mod drawing;
mod format;
mod levels;
mod options;
mod palette;
mod picture;
mod png_file;
mod semantic;
mod shipped;
mod svg;
mod table;
mod timeline;
mod units;
mod view;

use std::ops::Range;
use std::path::Path;

use crate::error::{Error, Result};
use crate::paraver::Reader;
use drawing::Drawing;
use table::Table;

pub(crate) use svg::{escaped, hex};
pub(crate) use timeline::Timeline;

pub use format::Format;
pub use options::RenderOptions;
pub use picture::Picture;
pub use view::{Rows, View};

/// Columns of pixels of a picture for the time shown.
const COLUMNS: usize = 1_400;
/// Largest number of columns of a timeline.
const MOST_COLUMNS: usize = 16_000;
/// Largest number of cells of all timelines with more columns than a picture has.
const CELLS: usize = 800_000;

/// Draws the trace at `prv`, which gzip may have compressed.
///
/// **Errors**: those of the files; [`BadRecord`](crate::Error::BadRecord) at the first line that Paraver
/// would refuse or misread; [`NoTime`](crate::Error::NoTime) if no time of the trace is to be shown,
/// [`NoRanks`](Error::NoRanks) if no rank is.
pub fn render(prv: impl AsRef<Path>, options: &RenderOptions) -> Result<Picture> {
    let mut reader = Reader::open(prv)?;
    let shown = reader.part(options.from_ns, options.to_ns)?;
    if let Some(Range { start: from, end: to }) = options.ranks
        && from >= to.min(reader.ranks())
    {
        return Err(Error::NoRanks { from, to, ranks: reader.ranks() });
    }
    if let Some(statistic) = options.view.table {
        let mut table = Table::new(&reader, options, statistic, shown);
        let lost = reader.read(|record| table.record(record))?;
        return Ok(table.finish(&reader, &lost));
    }
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
    let options = |view: &View| RenderOptions { view: view.clone(), ..RenderOptions::default() };
    let options: Vec<RenderOptions> = views.iter().map(options).collect();
    let drawing = |options| Drawing::new(&reader, options, shown.clone(), columns);
    let mut drawings: Vec<Drawing<'_>> = options.iter().map(drawing).collect();
    let lost = reader.read(|record| {
        drawings.iter_mut().for_each(|drawing| drawing.record(record));
    })?;
    Ok(drawings.into_iter().map(|drawing| drawing.timeline(&reader, &lost)).collect())
}
