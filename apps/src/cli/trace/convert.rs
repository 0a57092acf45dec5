//! `talpf trace convert`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use talpf_apps::Error;
use talpf_traces::{Conversion, OvniStreams, convert, convert_to_csv, convert_to_ovni, counted};

use crate::cli::output::make_folder;

#[derive(Args, Debug)]
pub(super) struct Options {
    /// Trace, possibly compressed by gzip; names are taken from its .pcf
    #[arg(value_name = "FILE.prv")]
    file: PathBuf,

    /// Form of the output
    #[arg(long, value_enum)]
    to: Form,

    /// New file; with csv, folder for states.csv, events.csv and messages.csv; with ovni, new folder for streams
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
    /// Streams for ovniemu and its relatives, with tasks, states, spans and levels, but no messages
    Ovni,
}

/// Writes the trace in the other form, and returns what there is to be said of it.
pub(super) fn text(Options { file, to, output }: &Options) -> Result<String, Error> {
    let conversion = match to {
        Form::Perfetto => Conversion::Perfetto,
        Form::Chrome => Conversion::Chrome,
        Form::Csv => {
            make_folder(output)?;
            let tables = convert_to_csv(file, output).map_err(Error::ConvertTrace)?;
            return Ok(tables.iter().map(|path| format!("file {}\n", path.display())).collect());
        }
        Form::Ovni => {
            output.parent().map_or(Ok(()), make_folder)?;
            let streams = convert_to_ovni(file, output).map_err(Error::ConvertTrace)?;
            return Ok(format!("folder {}\n{}", output.display(), of_streams(&streams)));
        }
    };
    output.parent().map_or(Ok(()), make_folder)?;
    convert(file, conversion, output).map_err(Error::ConvertTrace)?;
    Ok(format!("file {}\n", output.display()))
}

/// Describes what streams have, and what of the trace they do not have.
fn of_streams(of: &OvniStreams) -> String {
    let OvniStreams { streams, tasks, lost, .. } = of;
    let has = format!("{} of {}", counted(*streams as u64, "stream"), counted(*tasks, "task"));
    let messages = counted(of.messages_left_out, "message");
    let control = match of.control_messages_left_out {
        0 => String::new(),
        count => format!(" with data, {}", counted(count, "control message")),
    };
    let values = counted(of.values_left_out, "value");
    let left_out = format!(
        "{messages}{control} and {values} of single moments left out, which ovni has no events for"
    );
    let lost = lost.iter().map(|text| format!("not in the trace: {text}\n"));
    format!("{has}\n{left_out}\n{}", lost.collect::<String>())
}
