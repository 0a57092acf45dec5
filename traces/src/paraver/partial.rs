//! Files that appear complete or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use crate::error::{Error, Result};

/// Complete file under a temporary name, removed unless published.
pub(super) struct Partial {
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
    pub(super) fn fill(
        path: PathBuf,
        content: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
    ) -> Result<Self> {
        let mut partial = path.clone().into_os_string();
        partial.push(".partial");
        let this = Self { path, partial: partial.into() };
        let file = File::create(&this.partial).map_err(Error::io(&this.partial))?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        content(&mut out)?;
        out.flush().map_err(Error::io(&this.path))?;
        Ok(this)
    }

    /// Gives the file its name, in place of one that has it.
    pub(super) fn publish(self) -> Result<PathBuf> {
        fs::rename(&self.partial, &self.path).map_err(Error::io(&self.path))?;
        Ok(self.path.clone())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After `publish` no file is left to remove, and after an error the caller needs the first
        // error.
        let _ = fs::remove_file(&self.partial);
    }
}
