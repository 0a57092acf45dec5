//! Tables of the records, a file for each kind. Labels are quoted; numbers are those of the trace.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::check_output;
use crate::MessageKind;
use crate::error::{Error, Result};
use crate::paraver::{Names, Partial, Reader, Record};

const STATES: &str = "rank,row,cpu,begin_ns,end_ns,state,label";
const EVENTS: &str = "rank,row,cpu,time_ns,type,type_label,value,value_label";
const MESSAGES: &str = "from,to,from_row,to_row,call_ns,send_ns,receive_ns,end_ns,bytes,tag,kind";

/// Kind of a message that is no control message. A put, a get or another: events where it arrives say which.
const DATA: &str = "data";

/// Tables that grow, with their files.
struct Tables<'a> {
    paths: &'a [PathBuf; 3],
    files: [BufWriter<File>; 3],
    ranks: Vec<u32>,
    labels: Labels,
    /// Lines of a record.
    lines: Vec<u8>,
}

/// Quoted labels of the trace.
struct Labels {
    names: Names,
    states: HashMap<u32, String>,
    types: HashMap<u32, String>,
    values: HashMap<(u32, i64), String>,
}

pub(super) fn write(prv: &Path, folder: &Path) -> Result<[PathBuf; 3]> {
    let paths = ["states.csv", "events.csv", "messages.csv"].map(|name| folder.join(name));
    for path in &paths {
        check_output(path, prv)?;
    }
    let mut reader = Reader::open(prv)?;
    let begin = |index: usize, head: &str| -> Result<(Partial, BufWriter<File>)> {
        let (partial, mut out) = Partial::create(paths[index].clone())?;
        writeln!(out, "{head}").map_err(Error::io(&paths[index]))?;
        Ok((partial, out))
    };
    let (states, of_states) = begin(0, STATES)?;
    let (events, of_events) = begin(1, EVENTS)?;
    let (messages, of_messages) = begin(2, MESSAGES)?;
    let mut tables = Tables {
        paths: &paths,
        files: [of_states, of_events, of_messages],
        ranks: reader.ranks_of_rows().to_vec(),
        labels: Labels::new(reader.names()),
        lines: Vec::new(),
    };
    reader.try_read(|record| tables.add(record))?;
    for (out, path) in tables.files.iter_mut().zip(&paths) {
        out.flush().map_err(Error::io(path))?;
    }
    for partial in [states, events, messages] {
        partial.publish()?;
    }
    Ok(paths)
}

impl Tables<'_> {
    fn add(&mut self, record: Record<'_>) -> Result<()> {
        let Self { ranks, labels, lines, .. } = self;
        lines.clear();
        let table = match record {
            Record::State { row, cpu, begin_ns, end_ns, state } => {
                numbers(lines, [ranks[row], row as u32, cpu]);
                numbers(lines, [begin_ns, end_ns, state.into()]);
                labels.state(lines, state);
                0
            }
            Record::Event { row, cpu, time_ns, values } => {
                for (kind, value) in values {
                    numbers(lines, [ranks[row], row as u32, cpu]);
                    numbers(lines, [time_ns, (*kind).into()]);
                    labels.event(lines, *kind, *value);
                }
                1
            }
            Record::Communication(message) => {
                let rows = [message.sender, message.receiver];
                numbers(lines, rows.map(|row| ranks[row]));
                numbers(lines, rows);
                numbers(lines, [message.logical_send_ns, message.send_ns]);
                numbers(lines, [message.receive_ns, message.logical_receive_ns, message.bytes]);
                numbers(lines, [message.tag]);
                let kind = message.control().map_or(DATA, MessageKind::name);
                for part in ["\"", kind, "\"\n"] {
                    lines.extend_from_slice(part.as_bytes());
                }
                2
            }
        };
        let written = self.files[table].write_all(&self.lines);
        written.map_err(|source| Error::Io { path: self.paths[table].clone(), source })
    }
}

impl Labels {
    fn new(names: Names) -> Self {
        let of_values = |kind| {
            let values = names.labelled_values(kind);
            values.map(move |(value, label)| ((kind, value), quoted(label)))
        };
        Self {
            states: names.states().map(|(state, label)| (state, quoted(label))).collect(),
            types: names.event_types().map(|(kind, label)| (kind, quoted(label))).collect(),
            values: names.event_types().flat_map(|(kind, _)| of_values(kind)).collect(),
            names,
        }
    }

    /// Ends a line with the label of a state.
    fn state(&self, lines: &mut Vec<u8>, state: u32) {
        match self.states.get(&state) {
            Some(label) => lines.extend_from_slice(label.as_bytes()),
            None => lines.extend_from_slice(quoted(&self.names.state_label(state)).as_bytes()),
        }
        lines.push(b'\n');
    }

    /// Ends a line with the label of an event type, a value, and the label of that.
    fn event(&self, lines: &mut Vec<u8>, kind: u32, value: i64) {
        match self.types.get(&kind) {
            Some(label) => lines.extend_from_slice(label.as_bytes()),
            None => lines.extend_from_slice(quoted(&self.names.type_label(kind)).as_bytes()),
        }
        lines.push(b',');
        numbers(lines, [value]);
        match self.values.get(&(kind, value)) {
            Some(label) => lines.extend_from_slice(label.as_bytes()),
            None => {
                lines.push(b'"');
                digits(lines, value);
                lines.push(b'"');
            }
        }
        lines.push(b'\n');
    }
}

/// Appends numbers, each with a comma behind it.
fn numbers<const N: usize>(lines: &mut Vec<u8>, numbers: [impl itoa::Integer; N]) {
    for number in numbers {
        digits(lines, number);
        lines.push(b',');
    }
}

fn digits(lines: &mut Vec<u8>, number: impl itoa::Integer) {
    lines.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Returns text between quotes, which are doubled inside.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
