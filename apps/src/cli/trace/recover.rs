//! `talpf trace recover`.

use std::fs;
use std::path::{Path, PathBuf};

use talpf_apps::Error;
use talpf_traces::{Recovered, counted, recover};

/// Makes a trace of every file of records in `folder`, and returns a line with the path of each.
pub(super) fn text(folder: &Path) -> Result<String, Error> {
    let mut files = spill_files(folder).map_err(|source| {
        Error::ReadTrace(talpf_traces::Error::Io { path: folder.to_owned(), source })
    })?;
    files.sort();
    if files.is_empty() {
        return Err(Error::NothingToRecover { path: folder.to_owned() });
    }
    files.iter().map(|file| line(folder, file)).collect()
}

fn spill_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|end| end == "spill")).collect())
}

fn line(folder: &Path, file: &Path) -> Result<String, Error> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let recovered = recover(file, folder, &stem).map_err(Error::MakeTrace)?;
    let Recovered { files, records, damaged, .. } = recovered;
    let damage = if damaged == 0 {
        String::new()
    } else {
        format!(", {} of the file damaged", counted(damaged, "place"))
    };
    Ok(format!("trace {} ({}{damage})\n", files.prv.display(), counted(records, "record")))
}
