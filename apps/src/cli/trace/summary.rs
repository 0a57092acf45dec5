//! `talpf trace summary`.

use std::path::PathBuf;

use clap::Args;
use talpf_apps::Error;
use talpf_traces::Summary;

#[derive(Args, Debug)]
pub(super) struct Options {
    /// Trace, possibly compressed by gzip; names are taken from its .pcf
    #[arg(value_name = "FILE.prv")]
    file: PathBuf,

    /// Print JSON instead of tables
    #[arg(long, conflicts_with = "explain")]
    json: bool,

    /// Define each figure after the tables
    #[arg(long)]
    explain: bool,
}

/// Returns what is to be printed.
pub(super) fn text(Options { file, json, explain }: &Options) -> Result<String, Error> {
    let summary = Summary::of(file).map_err(Error::ReadTrace)?;
    Ok(if *json {
        format!("{:#}\n", serde_json::json!(summary))
    } else if *explain {
        format!("{summary}\n{}", Summary::EXPLANATION)
    } else {
        summary.to_string()
    })
}
