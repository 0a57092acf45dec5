//! Files that appear complete or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// File under a temporary name, removed unless published.
pub(crate) struct Partial {
    path: PathBuf,
    partial: PathBuf,
}

impl Partial {
    /// Writes the content of a file that `publish` names `path`.
    pub(super) fn write(
        path: PathBuf,
        content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<Self> {
        let name = path.clone();
        Self::fill(path, |out| content(out).map_err(Error::io(name)))
    }

    /// Like [`write`](Self::write), for a content that has other causes to fail.
    pub(crate) fn fill(
        path: PathBuf,
        content: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
    ) -> Result<Self> {
        let (this, mut out) = Self::create(path)?;
        content(&mut out)?;
        out.flush().map_err(Error::io(&this.path))?;
        Ok(this)
    }

    /// Creates an empty file that `publish` names `path`. The caller writes and flushes it before.
    pub(crate) fn create(path: PathBuf) -> Result<(Self, BufWriter<File>)> {
        let this = Self { partial: temporary(&path), path };
        let file = File::create(&this.partial).map_err(Error::io(&this.partial))?;
        Ok((this, BufWriter::with_capacity(1 << 18, file)))
    }

    /// Gives the file its name, in place of one that has it.
    pub(crate) fn publish(self) -> Result<PathBuf> {
        fs::rename(&self.partial, &self.path).map_err(Error::io(&self.path))?;
        Ok(self.path.clone())
    }
}

/// Returns the name of a file while it is written.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    partial.into()
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After `publish` no file is left to remove, and after an error the caller needs the first
        // error.
        let _ = fs::remove_file(&self.partial);
    }
}
