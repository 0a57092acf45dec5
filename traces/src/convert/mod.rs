//! Traces in forms that other programs show.
//!
//! Records are read once, in memory that grows with rows and labels, but not with records. `sequence`
//! finds slices of tasks, states, counters and messages; a form (`perfetto`, `chrome`) writes them as
//! they come. `csv` writes each record as it is. `ovni` reads twice, and knows all tasks between.

mod chrome;
mod csv;
mod json_text;
mod ovni;
mod perfetto;
mod sequence;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::paraver::{Partial, Reader, refuse_inputs};
pub use ovni::OvniStreams;
use sequence::{Form, Sequence};

/// Form of a trace for another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conversion {
    /// Protobuf of Perfetto, for `ui.perfetto.dev` and its query engine.
    Perfetto,
    /// JSON of Chrome's trace viewer, which others read, too.
    Chrome,
}

/// Writes the trace at `prv`, which gzip may have compressed, as `out` in another form: a track of tasks, one
/// of states and one for each counter of a row, and an arrow for each message.
///
/// **Errors**: those of the files; [`BadRecord`](Error::BadRecord) at the first line that Paraver
/// would refuse or misread; [`SameFile`](Error::SameFile). An earlier `out` then stays.
pub fn convert(prv: impl AsRef<Path>, to: Conversion, out: impl AsRef<Path>) -> Result<()> {
    let (prv, out) = (prv.as_ref(), out.as_ref().to_owned());
    check_output(&out, prv)?;
    let mut reader = Reader::open(prv)?;
    let path = out.clone();
    Partial::fill(out, |out| match to {
        Conversion::Perfetto => write(&mut reader, perfetto::Perfetto::new(out), &path),
        Conversion::Chrome => write(&mut reader, chrome::Chrome::new(out), &path),
    })?
    .publish()?;
    Ok(())
}

/// Checks that `out` is neither a file of the trace `prv` nor something that a file must not replace.
fn check_output(out: &Path, prv: &Path) -> Result<()> {
    refuse_inputs(out, &[prv])?;
    match fs::metadata(out) {
        Ok(there) if !there.is_file() => {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "not a file");
            Err(Error::Io { path: out.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn write(reader: &mut Reader, form: impl Form, path: &Path) -> Result<()> {
    let mut sequence = Sequence::new(reader, form).map_err(Error::io(path))?;
    let lost = reader.try_read(|record| {
        sequence.record(record).map_err(|source| Error::Io { path: path.to_owned(), source })
    })?;
    sequence.finish(&lost).map_err(Error::io(path))
}

/// Writes the trace at `prv`, which gzip may have compressed, as three tables in `folder`, which exists:
/// `states.csv`, `events.csv` and `messages.csv`. Returns their paths.
///
/// **Errors**: as those of [`convert`].
pub fn convert_to_csv(prv: impl AsRef<Path>, folder: impl AsRef<Path>) -> Result<[PathBuf; 3]> {
    csv::write(prv.as_ref(), folder.as_ref())
}

/// Writes the trace at `prv`, which gzip may have compressed, as streams of ovni in `folder`: a thread for each
/// row, in folders for machines and ranks, with tasks as those of nOS-V, and with states and other levels as
/// marks. `folder` does not exist, or is empty. All clocks are 1 ns higher than the times of the trace.
///
/// **Errors**: as those of [`convert`]; [`NoTasks`](Error::NoTasks); tasks that ovni cannot have,
/// [`OvniNumber`](Error::OvniNumber) and [`TaskOfTwoTypes`](Error::TaskOfTwoTypes). Nothing is left then.
///
/// **Cost**: 20 to 40 bytes of memory for each task, and about 40 more for one with several slices.
pub fn convert_to_ovni(prv: impl AsRef<Path>, folder: impl AsRef<Path>) -> Result<OvniStreams> {
    ovni::write(prv.as_ref(), folder.as_ref())
}
