//! Trace of a run.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use talpf_apps::Error;
use talpf_apps::run::Machine;
use talpf_traces::{HtmlReport, Limits, Recorder, TraceInfo, counted, stem_of_process};

use super::output::{Output, make_folder};
use super::report::Line;
use super::trace_pieces;

/// Largest number of rows, one for each worker of each rank: Paraver counts them with 16 bits.
const MOST_ROWS: usize = 65_535;

/// Ends of the names of the files of a trace.
const EXTENSIONS: [&str; 3] = ["prv", "pcf", "row"];

/// Name of the page with the report.
const REPORT: &str = "report.html";

/// Folder that gets the trace after the run. Opening its files is tried before the run; until the
/// trace is written, the folder is not created and its contents stay, unless records go there during
/// the run, or the run has several processes.
pub(super) struct TraceOutput {
    limits: Limits,
    recorder: Recorder,
    started: String,
    /// Output files: records, labels and rows, of one of several processes and of all.
    files: Vec<Output>,
    /// Page with a report of the trace, if there is to be one.
    report: Option<Output>,
    folder: PathBuf,
    /// `true` if the run has several processes.
    is_piece: bool,
    /// Stem of the file names.
    stem: &'static str,
}

impl TraceOutput {
    /// Checks that the folder can be created and written to, and that Paraver can show a run on
    /// `machine`.
    /// The files are named after `stem` and have what is within `limits`.
    pub(super) fn open(
        path: &Path,
        stem: &'static str,
        machine: Machine,
        limits: Limits,
        has_report: bool,
    ) -> Result<Self, Error> {
        let rows = machine.ranks() * machine.workers_of_rank();
        if rows > MOST_ROWS {
            let name = "ranks times workers of a trace";
            return Err(Error::OutOfRange { name, value: rows, least: 1, most: MOST_ROWS });
        }
        let pieces = piece(stem, &machine);
        if pieces.is_some() {
            // A process that removes a folder of its own takes it from the others.
            make_folder(path)?;
        }
        let first = machine.transport().has_first_rank();
        let stems = pieces.iter().cloned().chain(first.then(|| stem.to_owned()));
        let names =
            stems.flat_map(|stem| EXTENSIONS.map(|extension| format!("{stem}.{extension}")));
        let files = names.map(|name| Output::open_in(path, name)).collect::<Result<_, _>>()?;
        if let Some(piece) = &pieces {
            trace_pieces::remove(path, piece)?;
        }
        Ok(Self {
            recorder: Recorder::with_limits(limits.clone()),
            limits,
            // The same trace whenever the run is simulated.
            started: if machine.simulation().is_some() { utc(UNIX_EPOCH) } else { utc_now() },
            files,
            report: (has_report && first).then(|| Output::open_in(path, REPORT)).transpose()?,
            folder: path.to_owned(),
            is_piece: pieces.is_some(),
            stem,
        })
    }

    /// Creates the file that gets the records during a run on `machine`, in its folder.
    pub(super) fn spill(&mut self, machine: &Machine, comments: Vec<String>) -> Result<(), Error> {
        make_folder(&self.folder)?;
        let stem = piece(self.stem, machine).unwrap_or_else(|| self.stem.to_owned());
        let file = self.folder.join(format!("{stem}.spill"));
        let info = self.info(machine, comments);
        let recorder = Recorder::spilling(self.limits.clone(), &file, &info);
        self.recorder = recorder.map_err(Error::WriteTrace)?;
        Ok(())
    }

    /// Removes the file of the records, if there is one.
    pub(super) fn remove_spill(&self) -> Result<(), Error> {
        self.recorder.remove_spill().map_err(Error::WriteTrace)
    }

    fn info(&self, machine: &Machine, comments: Vec<String>) -> TraceInfo {
        let version = format!("talpf {}", env!("CARGO_PKG_VERSION"));
        TraceInfo {
            ranks: machine.ranks() as u32,
            workers: machine.workers_of_rank() as u32,
            own_workers: machine.simulation().is_some(),
            end_ns: 0,
            started: self.started.clone(),
            comments: [vec![version], comments].concat(),
        }
    }

    /// Returns the recorder of the run.
    pub(super) fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Returns `true` if nothing was recorded, or only the start of a process that has not met the others.
    pub(super) fn is_empty(&self) -> bool {
        self.recorder.is_empty() || (self.is_piece && !self.recorder.has_processes())
    }

    /// Returns the output files.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.files.iter().chain(&self.report)
    }

    /// Writes the records of a run on `machine`, and their report, and returns lines with the paths. Of
    /// several processes the first one joins the traces of all, and only that one has lines. Warns on the
    /// error stream of what is missing.
    pub(super) fn write(
        self,
        machine: &Machine,
        comments: Vec<String>,
    ) -> Result<Vec<Line>, Error> {
        let title = comments.join(", ");
        let info = self.info(machine, comments);
        let Self { recorder, folder, stem, report, .. } = self;
        make_folder(&folder)?;
        let files = recorder.write_paraver(&folder, stem, &info).map_err(Error::WriteTrace)?;
        let (kept, dropped) = (recorder.record_count(), recorder.dropped_count());
        recorder.remove_spill().map_err(Error::WriteTrace)?;
        if let Some(loss) = loss(&files.prv, dropped) {
            warn(&loss);
        }
        let (path, line) = match machine.processes() {
            1 => {
                let path = files.prv.display();
                let line = format!("{path} ({}, {dropped} dropped)", counted(kept, "record"));
                (files.prv, line)
            }
            _ if !machine.transport().has_first_rank() => return Ok(Vec::new()),
            processes => {
                let pieces = trace_pieces::join(&folder, stem, machine)?;
                if let Some(lost) = pieces.lost() {
                    warn(&lost);
                }
                let path = pieces.files.prv;
                let line = format!("{} (joined, {processes} processes)", path.display());
                (path, line)
            }
        };
        let mut lines = vec![("trace", line)];
        if let Some(output) = report {
            lines.push(("report", output.path().display().to_string()));
            let report = HtmlReport::of(&path, title).map_err(Error::ReadTrace)?;
            output.write(|out| report.write(out))?;
        }
        Ok(lines)
    }
}

/// Returns the stem of the trace of this process, if the run has several.
fn piece(stem: &str, machine: &Machine) -> Option<String> {
    let first = machine.ranks_here().start as u32;
    (machine.processes() > 1).then(|| stem_of_process(stem, first))
}

/// Prints a warning on the error stream.
fn warn(text: &str) {
    // With a single call, as errors; those of the stream are ignored.
    let _ = io::stderr().write_all(format!("warning: {text}\n").as_bytes());
}

/// Describes the records that a trace lacks; `None` if it has all.
fn loss(path: &Path, dropped: u64) -> Option<String> {
    let records = (dropped > 0).then(|| counted(dropped, "record"))?;
    Some(format!("{} lacks {records}, where its state is `Not recorded`", path.display()))
}

/// Returns the date and the time of day as Paraver shows them, in UTC.
pub(super) fn utc_now() -> String {
    utc(SystemTime::now())
}

fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (minutes, days) = (seconds / 60 % (24 * 60), seconds / (24 * 60 * 60));

    // Years begin in March here, so that a leap day is the last of its year: eras of 400 years,
    // from 1 March 0000, which is 719,468 days before 1970.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (400 * era + year, month + 3),
        _ => (400 * era + year + 1, month - 9),
    };
    let (hour, minute) = (minutes / 60, minutes % 60);
    format!("{day:02}/{month:02}/{year} at {hour:02}:{minute:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_a_trace_that_lacks_records_is_warned_of() {
        assert_eq!(loss(Path::new("t/jacobi.prv"), 0), None);
        let text = "t/jacobi.prv lacks 1 record, where its state is `Not recorded`";
        assert_eq!(loss(Path::new("t/jacobi.prv"), 1).as_deref(), Some(text));
    }

    #[test]
    fn dates_around_leap_days_and_new_year() {
        for (seconds, text) in [
            (0, "01/01/1970 at 00:00"),
            (951_782_399, "28/02/2000 at 23:59"),
            (951_782_400, "29/02/2000 at 00:00"),
            (951_868_800, "01/03/2000 at 00:00"),
            (1_767_225_599, "31/12/2025 at 23:59"),
            (1_767_225_600, "01/01/2026 at 00:00"),
            (4_107_542_400, "01/03/2100 at 00:00"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
