//! Traces of the processes of a run, each of which writes its own, and the first one joins them.
//!
//! A process leaves the run after it has written its trace, so that the first one waits until either is
//! known: the trace is there, or the process has left without one. Old traces of these names are removed
//! before the run.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::Duration;

use talpf_apps::Error;
use talpf_apps::run::Machine;
use talpf_apps::run::processes::has_left;
use talpf_runtime::Clock;
use talpf_traces::{TraceFiles, counted, paraver, stem_of_process};

/// Longest wait for the traces of other processes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time between two checks for them.
const PERIOD: Duration = Duration::from_millis(5);

/// Trace of all processes.
pub(super) struct Joined {
    pub(super) files: TraceFiles,
    /// Processes without a trace.
    lost: Vec<usize>,
}

impl Joined {
    /// Describes the processes that the trace lacks; `None` if it has all.
    pub(super) fn lost(&self) -> Option<String> {
        let path = self.files.prv.display();
        let (first, more) = self.lost.split_first()?;
        let others = match more.len() {
            0 => String::new(),
            count => format!(" and {}", counted(count, "other")),
        };
        Some(format!(
            "{path} lacks process {first}{others}: there is no trace of it here; \
             `talpf trace merge` joins one that comes later"
        ))
    }
}

/// Removes the trace with the stem `piece` that an earlier run has left in `folder`.
pub(super) fn remove(folder: &Path, piece: &str) -> Result<(), Error> {
    for extension in ["prv", "pcf", "row"] {
        let path = folder.join(format!("{piece}.{extension}"));
        match fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                return Err(Error::Write { path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Joins the traces of all processes of a run on `machine` in `folder`, as far as they are there, as the
/// trace with this stem.
pub(super) fn join(folder: &Path, stem: &str, machine: &Machine) -> Result<Joined, Error> {
    let each = machine.ranks() / machine.processes();
    let clock = Clock::start();
    let (mut pieces, mut lost) = (Vec::new(), Vec::new());
    for process in 0..machine.processes() {
        let piece = stem_of_process(stem, (process * each) as u32);
        let path = folder.join(format!("{piece}.prv"));
        match has_come(&path, process, &clock) {
            true => pieces.push(path),
            false => lost.push(process),
        }
    }
    let files = paraver::merge(&pieces, folder.join(format!("{stem}.prv")));
    Ok(Joined { files: files.map_err(Error::WriteTrace)?, lost })
}

/// Waits for the trace of a process. Returns `false` if it does not come.
fn has_come(path: &Path, process: usize, clock: &Clock) -> bool {
    loop {
        // Asked first: a process that has left writes nothing more.
        let is_last = has_left(process) || clock.now() > PATIENCE;
        if path.exists() || is_last {
            return path.exists();
        }
        thread::sleep(PERIOD);
    }
}
