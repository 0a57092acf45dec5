//! The Paraver writer.
//!
//! The model: all ranks share the workers of one process, so the trace has one
//! node with a cpu per worker, and every rank is a task with a thread per
//! worker. Thread `w + 1` of a task shows worker `w` while that worker belongs
//! to the rank: from the first slice of one of its tasks to the first slice of
//! another rank's. In between it also shows what the worker does outside
//! bodies; the other ranks' threads of this worker are idle meanwhile. Before
//! its first slice a worker belongs to the rank of that slice, or to rank 0 if
//! there is none.
//!
//! The records of all workers are put into one order by time (`timeline`).
//! Passes over it give the states (`intervals`) and communication lines
//! (`communications`), which need to know the future; a last one writes these
//! and the events (`points`) as they come (`body`). Memory: 16 bytes a record
//! for the order, 32 a state, 160 a message, beside the records themselves.

mod body;
mod communications;
mod intervals;
mod labels;
mod points;
mod slices;
mod timeline;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::recorder::Recorder;
use timeline::{Layout, Timeline};

/// What a trace says about its run beside the records.
#[derive(Clone, Debug, Default)]
pub struct TraceInfo {
    /// Ranks of the run.
    pub ranks: u32,
    /// Workers that all ranks share.
    pub workers: u32,
    /// Length of the run; the trace is longer if a record is later.
    pub end_ns: u64,
    /// Date and time of the start, for people: any text.
    pub started: String,
    /// Lines of text to keep in the trace: program, version, host, arguments.
    pub comments: Vec<String>,
}

/// The files of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFiles {
    /// The records.
    pub prv: PathBuf,
    /// The labels of states and events.
    pub pcf: PathBuf,
    /// The names of ranks, threads and cpus.
    pub row: PathBuf,
}

impl Recorder {
    /// Writes what the streams have handed over so far as `stem.prv`,
    /// `stem.pcf` and `stem.row` in `dir`, which is created if need be.
    ///
    /// The records stay in the recorder. Sends without their receive (and the
    /// reverse), dropped records, and whatever had to be corrected are counted
    /// in `#` lines of the trace.
    ///
    /// **Errors**: a record that the trace cannot hold (see [`Error`]), or the
    /// file system's. Files of an earlier trace are replaced only once the new
    /// ones are complete.
    pub fn write_paraver(&self, dir: &Path, stem: &str, info: &TraceInfo) -> Result<TraceFiles> {
        if stem.is_empty() || Path::new(stem).file_name() != Some(stem.as_ref()) {
            return Err(Error::Stem { stem: stem.to_owned() });
        }
        let layout = Layout::new(info)?;
        let collected = self.collected();
        let timeline = Timeline::new(&collected, layout)?;
        let mut comments = info.comments.clone();
        comments.extend(loss_comments(&collected, self.record_limit()));

        fs::create_dir_all(dir).map_err(Error::io(dir))?;
        let file = |extension: &str| dir.join(format!("{stem}.{extension}"));
        let names = self.labels().names().to_vec();
        let prv = Partial::write(file("prv"), |out| {
            body::write(out, &timeline, names.len(), &info.started, &comments)
        })?;
        let pcf = Partial::write(file("pcf"), |out| labels::write_pcf(out, &names))?;
        let row = Partial::write(file("row"), |out| labels::write_row(out, timeline.layout()))?;
        Ok(TraceFiles { pcf: pcf.publish()?, row: row.publish()?, prv: prv.publish()? })
    }
}

/// What the trace cannot show because it was not kept or not handed over.
fn loss_comments(collected: &crate::recorder::Collected, limit: usize) -> Vec<String> {
    let mut comments = Vec::new();
    for (worker, records) in &collected.workers {
        if records.dropped > 0 {
            let dropped = records.dropped;
            comments.push(format!(
                "worker {worker}: {dropped} records dropped, its stream was full at {limit}"
            ));
        }
    }
    if collected.open_streams > 0 {
        let open = collected.open_streams;
        comments.push(format!("{open} streams were still open: their last records may be missing"));
    }
    comments
}

/// Text that fits into one line of a trace, without what Paraver would take
/// for the start of a comment.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '#' { '_' } else { c }).collect()
}

/// A complete file under a provisional name, removed unless published.
struct Partial {
    path: PathBuf,
    partial: PathBuf,
}

impl Partial {
    fn write(
        path: PathBuf,
        content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<Self> {
        let mut partial = path.clone().into_os_string();
        partial.push(".partial");
        let this = Self { path, partial: partial.into() };
        File::create(&this.partial)
            .map(|file| BufWriter::with_capacity(1 << 18, file))
            .and_then(|mut out| content(&mut out).and_then(|()| out.flush()))
            .map_err(Error::io(&this.partial))?;
        Ok(this)
    }

    fn publish(self) -> Result<PathBuf> {
        fs::rename(&self.partial, &self.path).map_err(Error::io(&self.path))?;
        Ok(self.path.clone())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After `publish` there is nothing left to remove, and after an error
        // the first one is what the caller needs to hear about.
        let _ = fs::remove_file(&self.partial);
    }
}
