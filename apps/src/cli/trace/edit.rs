//! `talpf trace cut` and `merge`.

use std::path::{Path, PathBuf};

use clap::Args;
use talpf_apps::Error;
use talpf_traces::{TraceFiles, paraver};

use crate::cli::output::make_folder;
use crate::cli::time::time;

#[derive(Args, Debug)]
pub(super) struct CutOptions {
    /// Trace, possibly compressed by gzip, with its .pcf and .row
    #[arg(value_name = "FILE.prv")]
    file: PathBuf,

    /// First time that is kept, as 1.5ms
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<u64>,

    /// Time after the last that is kept [default: the end of the trace]
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<u64>,

    /// New trace, another than the one that is read
    #[arg(short, long, value_name = "FILE.prv")]
    output: PathBuf,
}

#[derive(Args, Debug)]
pub(super) struct MergeOptions {
    /// Traces with the same ranks, workers and cpus, such as those of the processes of a run; the .row is
    /// that of the first
    #[arg(value_name = "FILE.prv", required = true)]
    files: Vec<PathBuf>,

    /// New trace, another than those that are read
    #[arg(short, long, value_name = "FILE.prv")]
    output: PathBuf,
}

/// Writes the part, and returns its path.
pub(super) fn cut(CutOptions { file, from, to, output }: &CutOptions) -> Result<PathBuf, Error> {
    make_parent(output)?;
    path_of(paraver::cut(file, from.unwrap_or(0), *to, output))
}

/// Writes the joined trace, and returns its path.
pub(super) fn merge(MergeOptions { files, output }: &MergeOptions) -> Result<PathBuf, Error> {
    make_parent(output)?;
    path_of(paraver::merge(files, output))
}

fn make_parent(output: &Path) -> Result<(), Error> {
    output.parent().map_or(Ok(()), make_folder)
}

fn path_of(files: talpf_traces::Result<TraceFiles>) -> Result<PathBuf, Error> {
    files.map(|files| files.prv).map_err(Error::MakeTrace)
}
