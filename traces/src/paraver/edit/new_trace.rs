//! Places of the three files of a new trace.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::paraver::check::beside;
use crate::paraver::{Partial, Reader, TraceFiles, refuse_inputs};

/// Paths of a new trace, none of which is a file of an input.
pub(super) struct NewTrace {
    files: TraceFiles,
}

impl NewTrace {
    /// Checks the name of a new trace.
    ///
    /// **Errors**: [`NotPrv`](Error::NotPrv), [`SameFile`](Error::SameFile).
    pub(super) fn new(out: &Path, inputs: &[&Path]) -> Result<Self> {
        if out.extension().is_none_or(|extension| extension != "prv") {
            return Err(Error::NotPrv { path: out.to_owned() });
        }
        let [pcf, row] = ["pcf", "row"].map(|extension| out.with_extension(extension));
        let files = TraceFiles { prv: out.to_owned(), pcf, row };
        for path in [&files.prv, &files.pcf, &files.row] {
            refuse_inputs(path, inputs)?;
        }
        Ok(Self { files })
    }

    /// Path of the records.
    pub(super) fn prv(&self) -> PathBuf {
        self.files.prv.clone()
    }

    /// Names the records, and copies the labels and names of `input` beside them, if it has any, or
    /// writes `labels` in place of its own.
    pub(super) fn publish(
        self,
        prv: Partial,
        input: &Reader,
        labels: Option<&str>,
    ) -> Result<TraceFiles> {
        let pcf = match labels {
            Some(text) => {
                let path = self.files.pcf.clone();
                Some(Partial::write(path, |out| out.write_all(text.as_bytes()))?)
            }
            None => copy(&beside(input.path(), "pcf"), &self.files.pcf)?,
        };
        let row = copy(&beside(input.path(), "row"), &self.files.row)?;
        for (file, path) in [(pcf, &self.files.pcf), (row, &self.files.row)] {
            match file {
                Some(file) => drop(file.publish()?),
                // That of an earlier trace would give names to this one.
                None => remove(path)?,
            }
        }
        prv.publish()?;
        Ok(self.files)
    }
}

/// Copies a file; `None` if there is no such file.
fn copy(from: &Path, to: &Path) -> Result<Option<Partial>> {
    match fs::File::open(from) {
        Ok(mut file) => {
            Partial::write(to.to_owned(), |out| io::copy(&mut file, out).map(drop)).map(Some)
        }
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { path: from.to_owned(), source }),
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(Error::Io { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}
