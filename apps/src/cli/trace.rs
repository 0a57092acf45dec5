//! `talpf trace`.

mod convert;
mod diff;
mod edit;
mod picture;
mod recover;
mod summary;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use talpf_apps::Error;
use talpf_traces::paraver::{self, Report, Rule};

#[derive(Args, Debug)]
#[command(arg_required_else_help = false)]
pub(super) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Report everything that Paraver would refuse, drop or misread
    Check {
        /// Trace, possibly compressed by gzip, with its .pcf and .row; one of those alone; a view for Paraver,
        /// FILE.cfg; or a folder, for all of those in it
        #[arg(value_name = "FILE.prv")]
        file: PathBuf,
    },
    /// Say where the time of the workers went
    Summary(summary::Options),
    /// Compare two traces: what changed in tasks, states and syncs
    Diff(diff::Options),
    /// Draw states or events over time as SVG or PNG
    Render(picture::Options),
    /// Write the trace in a form of other programs
    Convert(convert::Options),
    /// Write a part of a trace as a trace
    Cut(edit::CutOptions),
    /// Join pieces of one run, of other times or other rows, in one trace
    Merge(edit::MergeOptions),
    /// Make a trace of what a run with --trace-spill has left that was killed
    Recover {
        /// Folder of the run
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

pub(super) fn run(options: Options) -> Result<(), Error> {
    match options.command {
        Command::Check { file } => check(&file),
        Command::Summary(options) => super::print(&summary::text(&options)?),
        Command::Diff(options) => super::print(&diff::text(&options)?),
        Command::Render(options) => {
            let path = picture::draw(options)?;
            super::print(&format!("picture {}\n", path.display()))
        }
        Command::Convert(options) => super::print(&convert::text(&options)?),
        Command::Cut(options) => print_path(&edit::cut(&options)?),
        Command::Merge(options) => print_path(&edit::merge(&options)?),
        Command::Recover { folder } => super::print(&recover::text(&folder)?),
    }
}

fn print_path(trace: &Path) -> Result<(), Error> {
    super::print(&format!("trace {}\n", trace.display()))
}

/// Prints a line for each finding, and a summary; for a folder those of each file.
fn check(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return check_folder(path);
    }
    let report = paraver::check_file(path).map_err(Error::ReadTrace)?;
    let mut findings = report.findings().iter();
    if let Some(finding) = findings.find(|finding| finding.rule == Rule::NotParaver) {
        return Err(Error::NoTrace { path: path.to_owned(), reason: finding.text.clone() });
    }
    super::print(&format!("{report}\n"))?;
    must_be_clean(path, &[report])
}

fn check_folder(folder: &Path) -> Result<(), Error> {
    let files = paraver::check_folder(folder).map_err(Error::ReadTrace)?;
    if files.is_empty() {
        let reason = "no file in it ends in .prv, .prv.gz, .pcf, .row or .cfg".to_owned();
        return Err(Error::NoTrace { path: folder.to_owned(), reason });
    }
    let mut reports = Vec::new();
    for (file, report) in files {
        super::print(&format!("{}:\n{report}\n", file.display()))?;
        reports.push(report);
    }
    must_be_clean(folder, &reports)
}

fn must_be_clean(path: &Path, reports: &[Report]) -> Result<(), Error> {
    if reports.iter().all(Report::is_clean) {
        return Ok(());
    }
    Err(Error::BadTrace {
        path: path.to_owned(),
        errors: reports.iter().map(Report::errors).sum(),
        warnings: reports.iter().map(Report::warnings).sum(),
    })
}
