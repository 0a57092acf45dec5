//! `talpf trace diff`.

use std::path::PathBuf;

use clap::Args;
use talpf_apps::Error;
use talpf_traces::Diff;

#[derive(Args, Debug)]
pub(super) struct Options {
    /// Trace, possibly compressed by gzip; names are taken from its .pcf
    #[arg(value_name = "A.prv")]
    first: PathBuf,

    /// Trace that is compared with the first
    #[arg(value_name = "B.prv")]
    second: PathBuf,

    /// Print JSON instead of tables
    #[arg(long, conflicts_with = "explain")]
    json: bool,

    /// Define each figure after the tables
    #[arg(long)]
    explain: bool,
}

/// Returns what is to be printed.
pub(super) fn text(Options { first, second, json, explain }: &Options) -> Result<String, Error> {
    let diff = Diff::of(first, second).map_err(Error::ReadTrace)?;
    Ok(if *json {
        format!("{:#}\n", serde_json::json!(diff))
    } else if *explain {
        format!("{diff}\n{}", Diff::EXPLANATION)
    } else {
        diff.to_string()
    })
}
