//! `talpf trace convert`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use talpf_apps::Error;
use talpf_traces::{Conversion, convert, convert_to_csv};

use crate::cli::output::make_folder;

#[derive(Args, Debug)]
pub(super) struct Options {
    /// Trace, possibly compressed by gzip; names are taken from its .pcf
    #[arg(value_name = "FILE.prv")]
    file: PathBuf,

    /// Form of the output
    #[arg(long, value_enum)]
    to: Form,

    /// New file; with csv, folder for states.csv, events.csv and messages.csv
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// Protobuf for ui.perfetto.dev and its query engine
    Perfetto,
    /// JSON of Chrome's trace viewer
    Chrome,
    /// Tables of the records, a file for each kind
    Csv,
}

/// Writes the trace in the other form, and returns the paths of the files.
pub(super) fn files(Options { file, to, output }: &Options) -> Result<Vec<PathBuf>, Error> {
    let conversion = match to {
        Form::Perfetto => Conversion::Perfetto,
        Form::Chrome => Conversion::Chrome,
        Form::Csv => {
            make_folder(output)?;
            return convert_to_csv(file, output).map(Vec::from).map_err(Error::ConvertTrace);
        }
    };
    output.parent().map_or(Ok(()), make_folder)?;
    convert(file, conversion, output).map_err(Error::ConvertTrace)?;
    Ok(vec![output.clone()])
}
