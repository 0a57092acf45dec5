//! Linter: reads any Paraver trace line by line and reports everything that Paraver would refuse,
//! drop, misread or show as nonsense, most of it without a message.
//!
//! The `.pcf` is read first, then the header, the `.row`, and the records, so that every record is
//! checked in one pass and memory does not grow with the trace. A header without usable objects
//! ends the check. A [`Reader`] gives the records of a trace to a program as they are checked.

mod body;
mod fields;
mod files;
mod header;
mod labels;
mod lines;
mod names;
mod objects;
mod reader;
mod record;
mod report;
mod rows;
mod rule;
mod states;
mod usage;
mod view_file;

use std::path::{Path, PathBuf};

pub use files::{check_file, check_folder};
pub(crate) use names::Names;
pub use reader::Reader;
pub(in crate::paraver) use record::Visitor;
pub use record::{Communication, Record};
pub use report::{Finding, Report, TraceCounts};
pub use rule::{Rule, Severity};
pub(crate) use view_file::argument;
pub use view_file::check_view;

use crate::error::Result;
use header::Header;
use labels::Labels;
use lines::Lines;
use objects::Objects;
use report::Log;

/// Checks the trace at `prv`, which gzip may have compressed, and the `.pcf` and `.row` of the same
/// stem if they exist.
///
/// **Errors**: those of reading the files. Every flaw of their contents is a [`Finding`].
pub fn check(prv: impl AsRef<Path>) -> Result<Report> {
    let prv = prv.as_ref();
    let mut report = Report::default();
    let mut lines = Lines::open(prv, Rule::CarriageReturn)?;
    let labels = check_labels(prv, &mut report)?;

    let mut log = Log::new(&mut report, prv);
    let header = check_header(&mut lines, &mut log)?;
    check_rows(prv, header.as_ref().map(|header| &header.objects), &mut report)?;
    if let Some(header) = &header {
        let counts = &mut report.counts;
        counts.ranks = header.objects.tasks();
        counts.threads = header.objects.threads();
        counts.nodes = header.objects.nodes();
        counts.cpus = header.objects.cpus();
        let mut log = Log::new(&mut report, prv);
        body::read(&mut lines, header, labels.as_ref(), &mut Unread, &mut log)?;
    }
    Ok(report)
}

/// Visitor that takes no record.
struct Unread;

impl Visitor for Unread {
    fn record(&mut self, _: Record<'_>) {}
}

/// Returns the path of another file of the trace `prv`, as `x.pcf` of `x.prv` and `x.prv.gz`.
pub(in crate::paraver) fn beside(prv: &Path, extension: &str) -> PathBuf {
    let is_compressed = prv.extension().is_some_and(|extension| extension == "gz");
    let prv = if is_compressed { prv.with_extension("") } else { prv.to_owned() };
    prv.with_extension(extension)
}

/// Checks the first line of a trace. Returns `None` if no record can be checked without it.
fn check_header(lines: &mut Lines, log: &mut Log<'_>) -> Result<Option<Header>> {
    Ok(match lines.next(log)? {
        Some((_, line)) => header::read(line, log),
        None => {
            log.add(Rule::NotParaver, 1, "the file is empty");
            None
        }
    })
}

fn check_labels(prv: &Path, report: &mut Report) -> Result<Option<Labels>> {
    let path = beside(prv, "pcf");
    let mut log = Log::new(report, &path);
    match Lines::open_if_present(&path, Rule::LabelCarriageReturn)? {
        Some(mut lines) => labels::read(&mut lines, &mut log).map(Some),
        None => {
            log.add(Rule::NoLabelFile, 1, "file not found: values are shown without labels");
            Ok(None)
        }
    }
}

/// Returns the names of the threads.
fn check_rows(prv: &Path, objects: Option<&Objects>, report: &mut Report) -> Result<Vec<String>> {
    let path = beside(prv, "row");
    let mut log = Log::new(report, &path);
    match Lines::open_if_present(&path, Rule::LabelCarriageReturn)? {
        Some(mut lines) => rows::read(&mut lines, objects, &mut log),
        None => {
            log.add(Rule::NoRowFile, 1, "file not found: rows are shown by number");
            Ok(Vec::new())
        }
    }
}
