//! The trace of a run that was killed.

use std::path::Path;

use super::file::SpillFile;
use crate::error::Result;
use crate::paraver::{Recorded, TraceFiles, TraceInfo, write_records};
use crate::recorder::MAIN_STREAM;

/// Trace of a run that was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// Files of the trace.
    pub files: TraceFiles,
    /// Number of its records.
    pub records: u64,
    /// Number of places where the file was damaged, each of which has cost a chunk of records or more.
    pub damaged: u64,
}

/// Writes what is in the file of a recorder that [spills](crate::Recorder::spilling) as
/// `stem.prv`, `stem.pcf` and `stem.row` in `dir`. The file stays.
///
/// The trace ends with its last record. Damage is counted in a comment.
///
/// **Errors**: those of [`write_paraver`](crate::Recorder::write_paraver); a file that is none of
/// such a recorder, or of another version.
pub fn recover(spill: &Path, dir: &Path, stem: &str) -> Result<Recovered> {
    let file = SpillFile::read(spill)?;
    let damaged = file.damaged;
    let mut info = file.info.clone().unwrap_or_else(|| smallest(&file));
    info.comments.push("recovered: the run did not end".to_owned());
    if damaged > 0 {
        info.comments.push(format!("records dropped: the file was damaged in {damaged} places"));
    }
    let recorded = Recorded {
        flushed: &file.records,
        names: &file.names,
        kept: file.extent.clone(),
        limits: None,
        run: &file.run,
    };
    let files = write_records(dir, stem, &info, recorded)?;
    let chunks = file.records.workers.values().flat_map(|worker| &worker.chunks);
    Ok(Recovered { files, records: chunks.map(|chunk| chunk.len() as u64).sum(), damaged })
}

/// Describes the smallest run that can have the records.
fn smallest(file: &SpillFile) -> TraceInfo {
    let records = file.records.workers.values().flat_map(|worker| worker.records());
    let ranks = records.flat_map(|record| record.event.ranks()).flatten();
    let workers = file.records.workers.keys().copied().filter(|worker| *worker != MAIN_STREAM);
    let count = |last: Option<u32>| last.map_or(1, |last| last.saturating_add(1));
    TraceInfo { ranks: count(ranks.max()), workers: count(workers.max()), ..TraceInfo::default() }
}
