//! Streams of ovni, metadata version 3, for `ovniemu`, `ovnidump` and `ovnitop`.
//!
//! Each row is a thread of ovni with a cpu of its own, since ovni refuses two threads on one cpu even for
//! the nanosecond in which one goes and the other comes; it is paused while the row is not created. Each
//! rank is a process, each machine a loom. Tasks are those of the nOS-V model (`tasks`), whose rows are
//! workers that rest while they are idle or blocked; states, spans and other levels are marks of ovni
//! (`marks`). Messages and values of single moments have no place there, and are counted.
//!
//! A trace is read twice: ovni wants to know of a task before any of its slices, on whichever thread, so that
//! types and tasks of a rank are created at clock 0, by its first thread. All other clocks are 1 higher than
//! the times of the trace. The folder has another name until it is complete.

mod label_text;
mod marks;
mod metadata;
mod streams;
mod tasks;
mod threads;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::paraver::{Reader, temporary};
use marks::Marks;
use metadata::Location;
use streams::Streams;
use tasks::Survey;
use threads::Threads;

/// Contents of a folder of ovni's streams, and counts of what it lacks of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OvniStreams {
    /// Number of streams, one for each row.
    pub streams: usize,
    /// Number of tasks.
    pub tasks: u64,
    /// Number of messages with data, for which ovni has no event.
    pub messages_left_out: u64,
    /// Number of control messages, which a trace has that was asked for them.
    pub control_messages_left_out: u64,
    /// Number of values that belong to a moment, or to an event type beyond the hundred that ovni has.
    pub values_left_out: u64,
    /// Comments of the trace that say what it lacks itself.
    pub lost: Vec<String>,
}

pub(super) fn write(prv: &Path, folder: &Path) -> Result<OvniStreams> {
    check_folder(folder)?;
    let mut survey = Survey::new(&Reader::open(prv)?, prv);
    Reader::open(prv)?.try_read(|record| survey.record(record))?;
    let (tasks, kinds) = survey.finish()?;

    let mut reader = Reader::open(prv)?;
    let marks = Marks::new(&reader, &kinds);
    let partial = PartialFolder::create(folder)?;
    let locations = Location::of_rows(&reader);
    let mut streams = Streams::create(&partial.partial, &locations, |location| {
        location.metadata(reader.ranks(), &marks)
    })?;
    let has = OvniStreams {
        streams: reader.ranks_of_rows().len(),
        tasks: tasks.len(),
        ..OvniStreams::default()
    };
    let mut threads = Threads::begin((&reader, prv), &locations, tasks, marks, &mut streams)?;
    let lost = reader.try_read(|record| threads.record(record))?;
    let left_out = threads.finish(reader.duration_ns())?;
    streams.finish()?;
    partial.publish()?;
    Ok(OvniStreams {
        messages_left_out: left_out.messages,
        control_messages_left_out: left_out.control_messages,
        values_left_out: left_out.values,
        lost,
        ..has
    })
}

/// Checks that a folder does not exist, or is empty.
fn check_folder(folder: &Path) -> Result<()> {
    let refuse = |text| {
        let source = io::Error::new(io::ErrorKind::AlreadyExists, text);
        Err(Error::Io { path: folder.to_owned(), source })
    };
    match fs::metadata(folder) {
        Ok(there) if !there.is_dir() => refuse("not a folder"),
        Ok(_) => match fs::read_dir(folder).map_err(Error::io(folder))?.next() {
            Some(_) => refuse("the folder is not empty"),
            None => Ok(()),
        },
        Err(_) => Ok(()),
    }
}

/// Folder under a temporary name, removed unless published.
struct PartialFolder {
    path: PathBuf,
    partial: PathBuf,
}

impl PartialFolder {
    fn create(path: &Path) -> Result<Self> {
        let partial = temporary(path);
        fs::create_dir(&partial).map_err(Error::io(&partial))?;
        Ok(Self { path: path.to_owned(), partial })
    }

    fn publish(self) -> Result<()> {
        fs::rename(&self.partial, &self.path).map_err(Error::io(&self.path))
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        // After `publish` no folder is left to remove, and after an error the caller needs the first error.
        let _ = fs::remove_dir_all(&self.partial);
    }
}
