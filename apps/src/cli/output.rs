//! Files that a run leaves behind.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use talpf_apps::Error;

/// A file that is opened before a long run and written after it, so that a run never ends with
/// nowhere to put its result. What the file held stays until then; a file made for a run that
/// failed is removed.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    file: File,
    remove_on_drop: bool,
}

impl Output {
    /// Opens `path` for writing, new or not.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let is_new = !path.exists();
        match OpenOptions::new().write(true).create(true).truncate(false).open(path) {
            Ok(file) => Ok(Self { path: path.to_owned(), file, remove_on_drop: is_new }),
            Err(source) => Err(Error::Write { path: path.to_owned(), source }),
        }
    }

    /// Checks that no two outputs will overwrite each other. Devices do not.
    pub(super) fn must_all_differ<'a>(
        outputs: impl IntoIterator<Item = &'a Self>,
    ) -> Result<(), Error> {
        let mut seen = HashSet::new();
        for output in outputs {
            let same = fs::canonicalize(&output.path)
                .is_ok_and(|path| path.is_file() && !seen.insert(path));
            if same {
                return Err(Error::SameOutput { path: output.path.clone() });
            }
        }
        Ok(())
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the file to whoever has written it by its path.
    pub(super) fn keep(mut self) {
        self.remove_on_drop = false;
    }

    /// Replaces the content by what `write` writes.
    pub(super) fn write(
        mut self,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<(), Error> {
        let fill = || {
            // Devices and pipes have no length to set.
            if self.file.metadata()?.is_file() {
                self.file.set_len(0)?;
            }
            let mut out = BufWriter::new(&self.file);
            write(&mut out)?;
            out.flush()
        };
        fill().map_err(|source| Error::Write { path: self.path.clone(), source })?;
        self.remove_on_drop = false;
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.remove_on_drop {
            // It is empty or cut short: if it cannot be removed, no harm is done.
            let _ = fs::remove_file(&self.path);
        }
    }
}
