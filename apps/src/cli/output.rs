//! Files that a run leaves behind.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use talpf_apps::Error;

/// A file that is written after a long run. Opening it is tried before, so that a run never ends with
/// nowhere to put its result; but nothing is left of the try, so that a run that ends early, in
/// whatever way, leaves what there was.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    /// Where the file is, by the path that all files have one of; `None` for devices and pipes.
    place: Option<PathBuf>,
    /// What was there before, held open: the reader of a pipe would take a close for the end.
    existing: Option<File>,
}

impl Output {
    /// Tries to open `path` for writing, new or not.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let is_new = !path.exists();
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|source| Error::Write { path: path.to_owned(), source })?;
        let place = fs::canonicalize(path).ok().filter(|place| place.is_file());
        if is_new {
            // If it cannot be removed, an empty file does no harm.
            let _ = fs::remove_file(place.as_deref().unwrap_or(path));
        }
        Ok(Self { path: path.to_owned(), place, existing: (!is_new).then_some(file) })
    }

    /// As [`Output::open`], in a folder that is made when the file is written.
    pub(super) fn open_in(folder: &Path, name: impl AsRef<Path>) -> Result<Self, Error> {
        let is_new = |part: &&Path| !part.as_os_str().is_empty() && !part.exists();
        let new: Vec<_> = folder.ancestors().take_while(is_new).collect();
        let output = make_folder(folder).and_then(|()| Self::open(&folder.join(name)));
        for part in new {
            // Refused when somebody else has put something there, which is just right.
            let _ = fs::remove_dir(part);
        }
        output
    }

    /// Checks that no two outputs will overwrite each other. Devices do not.
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

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the content by what `write` writes. A new file that cannot be written whole is
    /// removed.
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
                // If it cannot be removed, the error says enough.
                let _ = fs::remove_file(self.place.as_deref().unwrap_or(&self.path));
            }
            Error::Write { path: self.path.clone(), source }
        })
    }
}

/// Makes a folder and those above it, if they are not there.
pub(super) fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|source| Error::Write { path: path.to_owned(), source })
}
