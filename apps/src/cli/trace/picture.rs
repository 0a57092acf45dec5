//! `talpf trace render`.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use talpf_apps::Error;
use talpf_traces::{Format, RenderOptions, Rows, View, render};

use crate::cli::output::Output;
use crate::cli::time::time;
use crate::cli::trace_options::range;

#[derive(Args, Debug)]
pub(super) struct Options {
    /// Trace, possibly compressed by gzip; names are taken from its .pcf
    #[arg(value_name = "FILE.prv")]
    file: PathBuf,

    /// Picture, whose name ends in .svg or .png
    #[arg(short, long, value_name = "FILE", value_parser = picture)]
    output: (PathBuf, Format),

    /// View to draw, as the files in traces/cfg are called; or an event type by its label or number
    #[arg(long, default_value = "states")]
    view: View,

    /// Objects with a row each [default: those of the view]
    #[arg(long, value_enum)]
    rows: Option<RowsOption>,

    /// Ranks that are shown, as 14..18, without the last [default: all]
    #[arg(long, value_name = "FROM..TO", value_parser = ranks)]
    ranks: Option<Range<u32>>,

    /// First time that is shown, as 1.5ms
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<u64>,

    /// Time after the last that is shown [default: the end of the trace]
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RowsOption {
    /// Each worker of each rank
    Worker,
    /// Each rank, its workers together
    Rank,
    /// Each cpu, whichever rank runs there
    Cpu,
}

fn picture(text: &str) -> Result<(PathBuf, Format), String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => Ok((path, Format::Svg)),
        Some("png") => Ok((path, Format::Png)),
        _ => Err("the name of a picture ends in .svg or .png".to_owned()),
    }
}

fn ranks(text: &str) -> Result<Range<u32>, String> {
    let rank = |text: &str| text.parse().map(u32::into).map_err(|error| format!("{error}"));
    let Range { start, end } = range(text, rank)?;
    Ok(start as u32..end.min(u32::MAX.into()) as u32)
}

/// Draws the picture, and returns its path.
pub(super) fn draw(options: Options) -> Result<PathBuf, Error> {
    let Options { file, output: (path, format), view, rows, ranks, from, to } = options;
    let output = Output::open(&path)?;
    let rows = rows.map(|rows| match rows {
        RowsOption::Worker => Rows::Worker,
        RowsOption::Rank => Rows::Rank,
        RowsOption::Cpu => Rows::Cpu,
    });
    let title = file_name(&file);
    let options = RenderOptions { view, rows, ranks, from_ns: from.unwrap_or(0), to_ns: to, title };
    let picture = render(&file, &options).map_err(Error::ReadTrace)?;
    output.write(|out| picture.write(format, out))?;
    Ok(path)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
