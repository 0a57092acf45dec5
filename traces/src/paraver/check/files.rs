//! Checks of any file by its name, and of all files of a folder.

use std::fs;
use std::path::{Path, PathBuf};

use super::lines::Lines;
use super::report::{Log, Report};
use super::rule::Rule;
use super::{beside, check, check_view, labels, rows};
use crate::error::{Error, Result};

/// Kind of a file that can be checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Trace,
    Labels,
    Rows,
    View,
}

/// Checks a file by the end of its name: labels (`.pcf`) and names of rows (`.row`) without their trace, a view
/// (`.cfg`), or else a trace with both, as [`check()`].
///
/// **Errors**: those of reading the files. Every flaw of their contents is a
/// [`Finding`](super::Finding).
pub fn check_file(path: impl AsRef<Path>) -> Result<Report> {
    let path = path.as_ref();
    match kind(path).unwrap_or(Kind::Trace) {
        Kind::Trace => check(path),
        Kind::View => check_view(path),
        Kind::Labels => check_alone(path, |lines, log| labels::read(lines, log).map(drop)),
        Kind::Rows => check_alone(path, |lines, log| rows::read(lines, None, log).map(drop)),
    }
}

/// Checks the traces and views of a folder, and labels and names of rows without a trace beside them. Returns
/// the report of each, by name; folders in it are not searched.
///
/// **Errors**: those of reading the folder and the files.
pub fn check_folder(folder: impl AsRef<Path>) -> Result<Vec<(PathBuf, Report)>> {
    let folder = folder.as_ref();
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        files.push(entry.map_err(Error::io(folder))?.path());
    }
    files.retain(|file| kind(file).is_some() && file.is_file());
    files.sort();
    let traces: Vec<PathBuf> =
        files.iter().filter(|file| kind(file) == Some(Kind::Trace)).cloned().collect();
    files.retain(|file| {
        let of_trace = |trace: &PathBuf| {
            ["pcf", "row"].iter().any(|extension| beside(trace, extension) == *file)
        };
        !traces.iter().any(of_trace)
    });
    files.into_iter().map(|file| check_file(&file).map(|report| (file, report))).collect()
}

/// Returns the kind that a name stands for; `None` for a name of something else.
fn kind(path: &Path) -> Option<Kind> {
    match path.extension()?.to_str()? {
        "prv" => Some(Kind::Trace),
        "gz" => kind(&path.with_extension("")).filter(|kind| *kind == Kind::Trace),
        "pcf" => Some(Kind::Labels),
        "row" => Some(Kind::Rows),
        "cfg" => Some(Kind::View),
        _ => None,
    }
}

/// Checks a label file whose trace is not at hand.
fn check_alone(
    path: &Path,
    read: impl FnOnce(&mut Lines, &mut Log<'_>) -> Result<()>,
) -> Result<Report> {
    let mut report = Report::default();
    let mut lines = Lines::open(path, Rule::LabelCarriageReturn)?;
    read(&mut lines, &mut Log::new(&mut report, path))?;
    Ok(report)
}
