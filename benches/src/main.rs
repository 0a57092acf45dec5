//! The `talpf-bench` command.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures what tasks, puts and syncs cost.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// The smallest things: one task, one request, one put, one sync, one trace record.
    Micro {
        /// Also write the figures to this file: each name with median, min, max and unit.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Only figures whose names begin with this.
        #[arg(default_value = "")]
        only: String,
    },
}

fn main() -> ExitCode {
    let Bench::Micro { json, only } = Arguments::parse().bench;
    match micro(json, &only) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("error: {text}");
            ExitCode::FAILURE
        }
    }
}

fn micro(json: Option<PathBuf>, only: &str) -> Result<(), String> {
    let unwritable = |path: &PathBuf, error| format!("cannot write {}: {error}", path.display());
    if let Some(path) = &json {
        // Before the long run, so that its figures are not lost after it.
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(|error| unwritable(path, error))?;
    }
    let report = talpf_benches::micro::run(only).map_err(|error| error.to_string())?;
    match json {
        Some(path) => report.write_json(&path).map_err(|error| unwritable(&path, error)),
        None => Ok(()),
    }
}
