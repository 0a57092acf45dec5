//! Output files of a run.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use talpf_apps::Error;

/// File that is written after a long run. Opening is tried before the run, so that no result is
/// lost for lack of a writable file. The trial leaves nothing behind, so that a run that ends early
/// does not change existing files.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    /// Canonical path of the file; `None` for devices and pipes.
    place: Option<PathBuf>,
    /// Existing file, held open: the reader of a pipe would take a close for the end.
    existing: Option<File>,
}

impl Output {
    /// Tries to open `path` for writing, whether it exists or not.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let is_new = !path.exists();
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|source| Error::Write { path: path.to_owned(), source })?;
        let place = fs::canonicalize(path).ok().filter(|place| place.is_file());
        if is_new {
            // If the file cannot be removed, it is empty and does no harm.
            let _ = fs::remove_file(place.as_deref().unwrap_or(path));
        }
        Ok(Self { path: path.to_owned(), place, existing: (!is_new).then_some(file) })
    }

    /// Tries to open a file in a folder that is created when the file is written.
    pub(super) fn open_in(folder: &Path, name: impl AsRef<Path>) -> Result<Self, Error> {
        let is_new = |part: &&Path| !part.as_os_str().is_empty() && !part.exists();
        let new: Vec<_> = folder.ancestors().take_while(is_new).collect();
        let output = make_folder(folder).and_then(|()| Self::open(&folder.join(name)));
        for part in new {
            // Fails if the folder is no longer empty, and must then stay.
            let _ = fs::remove_dir(part);
        }
        output
    }

    /// Checks that no two outputs are the same file. Devices may be.
    pub(super) fn must_all_differ<'a>(
        outputs: impl IntoIterator<Item = &'a Self>,
    ) -> Result<(), Error> {
        let mut seen = HashSet::new();
        for output in outputs {
            if output.place.as_ref().is_some_and(|place| !seen.insert(place)) {
                return Err(Error::SameOutput { path: output.path.clone() });
            }
        }
        Ok(())
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the content with the output of `write`. A new file that cannot be written
    /// completely is removed.
    pub(super) fn write(
        self,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<(), Error> {
        if let Some(folder) = self.path.parent() {
            make_folder(folder)?;
        }
        let is_new = self.existing.is_none();
        let fill = || {
            let file = self.existing.map_or_else(|| File::create(&self.path), Ok)?;
            // Devices and pipes have no length to set.
            if file.metadata()?.is_file() {
                file.set_len(0)?;
            }
            let mut out = BufWriter::new(&file);
            write(&mut out)?;
            out.flush()
        };
        fill().map_err(|source| {
            if is_new {
                // If the file cannot be removed, the error message is sufficient.
                let _ = fs::remove_file(self.place.as_deref().unwrap_or(&self.path));
            }
            Error::Write { path: self.path.clone(), source }
        })
    }
}

/// Creates a folder and its missing parents.
pub(super) fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|source| Error::Write { path: path.to_owned(), source })
}
