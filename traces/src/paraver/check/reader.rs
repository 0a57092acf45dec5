//! Reader of a trace whose records a program wants.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::body;
use super::header::Header;
use super::lines::Lines;
use super::names::Names;
use super::record::{Record, Visitor};
use super::report::{Log, Report};
use super::rule::{Rule, Severity};
use crate::error::{Error, Result};
use crate::paraver::{EventKind, LOSSES, SIMULATED};

/// Reader of any Paraver trace, ours or another's, in one pass and in memory that does not grow with it.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    lines: Lines,
    header: Header,
    names: Names,
    ranks: Vec<u32>,
    /// Names of the rows, if all have one.
    row_labels: Option<Vec<String>>,
    /// Profile and cores of the machine that was simulated, as a comment read so far has them.
    simulation: Option<String>,
}

impl Reader {
    /// Opens the trace at `prv`, which gzip may have compressed, with the labels of the `.pcf` and
    /// the names of the `.row` of the same stem if those exist.
    ///
    /// **Errors**: those of the files, and [`BadRecord`](Error::BadRecord) for a header that cannot be read.
    pub fn open(prv: impl AsRef<Path>) -> Result<Self> {
        let path = prv.as_ref().to_owned();
        let mut lines = Lines::open(&path, Rule::CarriageReturn)?;
        let labels = super::check_labels(&path, &mut Report::default())?;
        let names = Names::new(labels.unwrap_or_default());
        let mut report = Report::default();
        let mut log = Log::new(&mut report, &path);
        let header = super::check_header(&mut lines, &mut log)?;
        first_error(&path, &report)?;
        let Some(header) = header else {
            let text = "the header cannot be read".to_owned();
            return Err(Error::BadRecord { path, line: 1, text });
        };
        let ranks = header.objects.ranks_of_threads();
        let mut report = Report::default();
        let row_labels = super::check_rows(&path, Some(&header.objects), &mut report)?;
        let row_labels = Some(row_labels).filter(|_| report.findings().is_empty());
        Ok(Self { path, lines, header, names, ranks, row_labels, simulation: None })
    }

    /// Length of the trace.
    pub fn duration_ns(&self) -> u64 {
        self.header.to_ns(self.header.duration)
    }

    /// Rank of each row: Paraver's task, counted over all applications from 0.
    pub fn ranks_of_rows(&self) -> &[u32] {
        &self.ranks
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.header.objects.tasks() as u32
    }

    /// Number of the machine of each rank, from 1; 1 if the trace declares none.
    pub(crate) fn machines_of_ranks(&self) -> Vec<u64> {
        self.header.objects.nodes_of_tasks().collect()
    }

    /// Number of cpus; 0 if the trace declares none.
    pub fn cpus(&self) -> u32 {
        self.header.objects.cpus() as u32
    }

    /// Name of a row, as `1.2.1` for application, task and thread.
    pub fn row_name(&self, row: usize) -> String {
        self.header.objects.name(row).to_string()
    }

    /// Label of a row: its name in the `.row`; its rank and its number within that if it has none.
    pub fn row_label(&self, row: usize) -> Cow<'_, str> {
        if let Some(label) = self.row_labels.as_ref().and_then(|labels| labels.get(row)) {
            return label.into();
        }
        let rank = self.ranks[row];
        let first = self.ranks.partition_point(|of| *of < rank);
        format!("rank {rank} worker {}", row - first).into()
    }

    /// Profile and cores of the machine that the run simulated, once the records are read; `None` if its times
    /// are those of a real one.
    pub fn simulation(&self) -> Option<&str> {
        self.simulation.as_deref()
    }

    /// Label of a state; its number if it has none.
    pub fn state_label(&self, state: u32) -> Cow<'_, str> {
        self.names.state_label(state)
    }

    /// Label of an event type; its number if it has none.
    pub fn type_label(&self, kind: u32) -> Cow<'_, str> {
        self.names.type_label(kind)
    }

    /// Label of a value of an event type; the number if it has none.
    pub fn value_label(&self, kind: u32, value: i64) -> Cow<'_, str> {
        self.names.value_label(kind, value)
    }

    /// Returns the values of an event type that have labels, in no order.
    pub fn labelled_values(&self, kind: u32) -> impl Iterator<Item = (i64, &str)> {
        self.names.labelled_values(kind)
    }

    /// Gives all records to `visit`, in the order of the file. Returns the comments that say what the trace
    /// lacks.
    ///
    /// **Errors**: [`BadRecord`](Error::BadRecord) at the first line that Paraver would refuse or
    /// misread; the records before it have been visited.
    pub fn read(&mut self, mut visit: impl FnMut(Record<'_>)) -> Result<Vec<String>> {
        self.try_read(|record| {
            visit(record);
            Ok(())
        })
    }

    /// Gives records to `visit` until it fails, in the order of the file. Returns the comments that say what
    /// the trace lacks.
    ///
    /// **Errors**: as [`read`](Self::read), and the first one of `visit`.
    pub(crate) fn try_read(
        &mut self,
        visit: impl FnMut(Record<'_>) -> Result<()>,
    ) -> Result<Vec<String>> {
        let mut taker = Taker { visit, visited: Ok(()), losses: Vec::new(), simulation: None };
        self.visit(&mut taker)?;
        self.simulation = taker.simulation;
        Ok(taker.losses)
    }

    /// Labels of the trace, which outlive a borrow of the reader.
    pub(crate) fn names(&self) -> Names {
        self.names.clone()
    }

    /// Gives all lines to `visitor`, in the order of the file.
    ///
    /// **Errors**: as [`read`](Self::read), and those of `visitor`.
    pub(in crate::paraver) fn visit(&mut self, visitor: &mut dyn Visitor) -> Result<()> {
        let mut report = Report::default();
        let mut strict = Strict { path: &self.path, visitor, findings: 0 };
        let mut log = Log::new(&mut report, &self.path);
        body::read(&mut self.lines, &self.header, None, &mut strict, &mut log)?;
        first_error(&self.path, &report)
    }

    /// Path of the trace.
    pub(in crate::paraver) fn path(&self) -> &Path {
        &self.path
    }

    /// Date of the run in the header.
    pub(in crate::paraver) fn started(&self) -> &str {
        &self.header.started
    }

    /// Objects and number of communicators, as the header has them.
    pub(in crate::paraver) fn objects_text(&self) -> &str {
        &self.header.objects_text
    }

    /// Returns the event types whose values last until the next one: levels of ours, and those of other
    /// programs that have labelled values. A number without labels may be that of a moment.
    pub(crate) fn levels(&self) -> HashSet<u32> {
        let labelled = self.names.labels().types_with_values();
        let others = labelled.filter(|kind| EventKind::of(*kind).is_none());
        let ours = EventKind::ALL.into_iter().filter(|kind| kind.is_level());
        others.chain(ours.map(EventKind::number)).collect()
    }

    /// Returns the times from `from_ns` to `to_ns`, or to the end of the trace.
    ///
    /// **Errors**: [`NoTime`](Error::NoTime) if the trace has none of them.
    pub(crate) fn part(&self, from_ns: u64, to_ns: Option<u64>) -> Result<Range<u64>> {
        let end_ns = self.duration_ns();
        let to_ns = to_ns.unwrap_or(end_ns).min(end_ns);
        if from_ns >= to_ns {
            return Err(Error::NoTime { from_ns, to_ns, end_ns });
        }
        Ok(from_ns..to_ns)
    }
}

/// Visitor that takes records and losses.
struct Taker<F> {
    visit: F,
    /// Result of the last visit.
    visited: Result<()>,
    losses: Vec<String>,
    simulation: Option<String>,
}

impl<F: FnMut(Record<'_>) -> Result<()>> Visitor for Taker<F> {
    fn record(&mut self, record: Record<'_>) {
        self.visited = (self.visit)(record);
    }

    fn comment(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text).replace(char::is_control, " ");
        if LOSSES.iter().any(|loss| text.contains(loss)) {
            self.losses.push(text);
        } else if let Some((_, machine)) = text.split_once(SIMULATED) {
            self.simulation = Some(machine.to_owned());
        }
    }

    fn line_ends(&mut self, _: &Report) -> Result<()> {
        std::mem::replace(&mut self.visited, Ok(()))
    }
}

/// Visitor that ends the reading at the first error.
struct Strict<'a> {
    path: &'a Path,
    visitor: &'a mut dyn Visitor,
    /// Number of findings seen.
    findings: usize,
}

impl Visitor for Strict<'_> {
    fn record(&mut self, record: Record<'_>) {
        self.visitor.record(record);
    }

    fn comment(&mut self, text: &[u8]) {
        self.visitor.comment(text);
    }

    fn communicator(&mut self, line: &[u8]) {
        self.visitor.communicator(line);
    }

    fn line_ends(&mut self, report: &Report) -> Result<()> {
        if report.findings().len() != self.findings {
            self.findings = report.findings().len();
            first_error(self.path, report)?;
        }
        self.visitor.line_ends(report)
    }
}

fn first_error(path: &Path, report: &Report) -> Result<()> {
    let mut findings = report.findings().iter();
    match findings.find(|finding| finding.rule.severity() == Severity::Error) {
        Some(finding) => {
            let (path, text) = (path.to_owned(), finding.text.clone());
            Err(Error::BadRecord { path, line: finding.line, text })
        }
        None => Ok(()),
    }
}
