//! The Paraver writer.
//!
//! The model: all ranks share the workers of one process, so the trace has one
//! node with a cpu per worker, and every rank is a task with a thread per
//! worker. Thread `w + 1` of a task shows worker `w` while that worker belongs
//! to the rank: from the first slice of one of its tasks to the first slice of
//! another rank's. In between it also shows what the worker does outside
//! bodies; the other ranks' threads of this worker do not exist meanwhile.
//! Before its first slice a worker belongs to the rank of that slice, or to
//! rank 0 if there is none. An event on a row that does not show its worker
//! has cpu 0, as Paraver takes the row of the latest event of a cpu for the
//! one that runs there.
//!
//! Ranks with workers of their own, such as the virtual cores of a simulated run, are the simpler case:
//! a cpu for each, and one row, which always shows it.
//!
//! Threads that are no workers count as one worker more, the last, with a row for the ranks that they
//! record something of. Outside their slices, where nothing is known of them, that row is not created.
//!
//! The trace of one of several processes has the rows of all, of which it fills its own. A message to
//! or from another process is two halves: each trace has its own as an event (`halves`), from which the
//! merge of the traces makes the communication line. Threads that are no workers have no row there.
//!
//! A worker exists from its first to its last record, and is scheduling
//! outside all slices, which nest.
//!
//! The records of each worker are put in order (`in_order`), and those of all are merged by time as
//! they are written (`timeline`). States need the next change of their worker (`intervals`),
//! communication lines both of their records (`communications`); these and the events (`points`) are
//! written as they come (`body`). Memory: 4 bytes a slice, 8 each time that a row shows its worker
//! again, 12 a message, 8 a sync, beside the records themselves.

mod body;
mod causes;
mod communications;
mod entry;
mod in_order;
mod intervals;
mod labels;
mod layout;
mod line;
mod one_line;
mod owners;
mod points;
mod records;
mod segments;
mod slices;
mod timeline;
mod trace_files;
mod worker_states;

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::extent::{Edges, Keep, Limits};
use crate::paraver::clock_comment::clock_comment;
use crate::paraver::partial::Partial;
use crate::processes::stem_of_process;
use crate::recorder::{FlushedRecords, MAIN_STREAM, Recorder, Run};
use crate::spill::SpillFile;
use layout::Layout;
use timeline::Timeline;
pub use trace_files::{TraceFiles, TraceInfo};

impl Recorder {
    /// Writes the flushed records as `stem.prv`, `stem.pcf` and `stem.row` in `dir`, which is
    /// created if it does not exist.
    ///
    /// The records stay in the recorder. Sends without receive (and the reverse), dropped records,
    /// and corrections are counted in `#` lines of the trace.
    ///
    /// **Errors**: a record that the trace cannot hold (see [`Error`]); those of the file system.
    /// Files of an earlier trace are replaced only after the new ones are complete.
    pub fn write_paraver(&self, dir: &Path, stem: &str, info: &TraceInfo) -> Result<TraceFiles> {
        let mut flushed = self.flushed();
        let spilled = self.spill().map(|spill| SpillFile::read(spill.complete()?)).transpose()?;
        if let Some(spilled) = spilled {
            for (worker, records) in spilled.records.workers {
                flushed.workers.entry(worker).or_default().chunks = records.chunks;
            }
        }
        let names = self.labels().names().to_vec();
        let run = self.run();
        let first = run.processes.as_ref().map(|processes| processes.own_ranks().start);
        let stem = first.map_or_else(|| stem.to_owned(), |first| stem_of_process(stem, first));
        let recorded = Recorded {
            flushed: &flushed,
            names: &names,
            kept: self.edges().map(Edges::times),
            limits: Some(self.limits()),
            run: &run,
        };
        let written = write_records(dir, &stem, info, recorded);
        if self.spill().is_some() {
            flushed.workers.values_mut().for_each(|worker| worker.chunks.clear());
        }
        written
    }
}

/// Records of a run, and what is known of them.
pub(crate) struct Recorded<'a> {
    pub(crate) flushed: &'a FlushedRecords,
    /// Names of tasks.
    pub(crate) names: &'a [Arc<str>],
    /// Times outside which nothing was kept.
    pub(crate) kept: Option<Range<u64>>,
    /// Limits beyond which records were dropped, if those are known.
    pub(crate) limits: Option<&'a Limits>,
    pub(crate) run: &'a Run,
}

/// Writes records as a trace.
pub(crate) fn write_records(
    dir: &Path,
    stem: &str,
    info: &TraceInfo,
    Recorded { flushed, names, kept, limits, run }: Recorded<'_>,
) -> Result<TraceFiles> {
    if stem.is_empty() || Path::new(stem).file_name() != Some(stem.as_ref()) {
        return Err(Error::Stem { stem: stem.to_owned() });
    }
    let layout = Layout::new(info, run.processes.as_ref())?;
    let timeline = Timeline::new(flushed, layout, kept.clone())?;
    let mut comments = info.comments.clone();
    let of_records = kept.as_ref().map(extent_comment).into_iter();
    let of_records = of_records.chain(loss_comments(flushed, limits, run.processes.is_some()));
    match &run.processes {
        None => comments.extend(of_records),
        Some(processes) => {
            comments.extend(run.clock.iter().map(clock_comment));
            comments.extend(of_records.map(|text| format!("process {}: {text}", processes.own)));
        }
    }

    fs::create_dir_all(dir).map_err(Error::io(dir))?;
    let file = |extension: &str| dir.join(format!("{stem}.{extension}"));
    let prv = Partial::write(file("prv"), |out| {
        body::write(out, &timeline, names.len(), &info.started, &comments)
    })?;
    let pcf = Partial::write(file("pcf"), |out| {
        labels::write_pcf(out, names, timeline.counters(), timeline.has_control())
    })?;
    let row = Partial::write(file("row"), |out| labels::write_row(out, &timeline.layout()))?;
    Ok(TraceFiles { pcf: pcf.publish()?, row: row.publish()?, prv: prv.publish()? })
}

/// Returns a comment about the part of the run that was kept.
fn extent_comment(times: &Range<u64>) -> String {
    match (times.start, times.end) {
        (u64::MAX, _) => "recorded nothing: the run had no such part".to_owned(),
        (start, u64::MAX) => format!("recorded from {start} ns on only"),
        (start, end) => format!("recorded from {start} ns to {end} ns only"),
    }
}

/// Returns comments about records that were dropped or not flushed.
fn loss_comments(
    flushed: &FlushedRecords,
    limits: Option<&Limits>,
    has_processes: bool,
) -> Vec<String> {
    let mut comments = Vec::new();
    for (&worker, records) in &flushed.workers {
        if worker == MAIN_STREAM && has_processes {
            let left_out = records.records().count() as u64 + records.dropped;
            comments.push(format!("main: {left_out} records dropped, it has no row"));
            continue;
        }
        if records.dropped > 0 {
            let dropped = records.dropped;
            let who = match worker {
                MAIN_STREAM => "main".to_owned(),
                worker => format!("worker {worker}"),
            };
            comments.push(match limits {
                Some(Limits { records, keep: Keep::First, .. }) => {
                    format!("{who}: {dropped} records dropped, its stream was full at {records}")
                }
                Some(Limits { records, keep: Keep::Last, .. }) => format!(
                    "{who}: {dropped} records dropped, the first ones: its stream keeps {records}"
                ),
                None => format!("{who}: {dropped} records dropped, its stream was full"),
            });
        }
    }
    if flushed.open_streams > 0 {
        let open = flushed.open_streams;
        comments.push(format!("{open} streams were still open: their last records may be missing"));
    }
    comments
}
