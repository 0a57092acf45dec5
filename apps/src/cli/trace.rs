//! `talpf trace`.

mod convert;
mod diff;
mod edit;
mod picture;
mod summary;
mod time;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use talpf_apps::Error;
use talpf_traces::paraver::{self, Rule};

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
        /// Trace, possibly compressed by gzip, with its .pcf and .row; or a view for Paraver, FILE.cfg
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
        Command::Convert(options) => {
            let line = |path: &PathBuf| format!("file {}\n", path.display());
            super::print(&convert::files(&options)?.iter().map(line).collect::<String>())
        }
        Command::Cut(options) => print_path(&edit::cut(&options)?),
        Command::Merge(options) => print_path(&edit::merge(&options)?),
    }
}

fn print_path(trace: &Path) -> Result<(), Error> {
    super::print(&format!("trace {}\n", trace.display()))
}

/// Prints one line per finding, and a summary.
fn check(path: &Path) -> Result<(), Error> {
    let is_view = path.extension().is_some_and(|extension| extension == "cfg");
    let report = if is_view { paraver::check_view(path) } else { paraver::check(path) };
    let report = report.map_err(Error::ReadTrace)?;
    let mut findings = report.findings().iter();
    if let Some(finding) = findings.find(|finding| finding.rule == Rule::NotParaver) {
        return Err(Error::NoTrace { path: path.to_owned(), reason: finding.text.clone() });
    }
    super::print(&format!("{report}\n"))?;
    if report.is_clean() {
        return Ok(());
    }
    Err(Error::BadTrace {
        path: path.to_owned(),
        errors: report.errors(),
        warnings: report.warnings(),
    })
}
