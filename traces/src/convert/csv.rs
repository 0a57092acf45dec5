//! Tables of the records, a file for each kind. Labels are quoted; numbers are those of the trace.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::check_output;
use crate::error::{Error, Result};
use crate::paraver::{Names, Partial, Reader, Record};

const STATES: &str = "rank,row,cpu,begin_ns,end_ns,state,label";
const EVENTS: &str = "rank,row,cpu,time_ns,type,type_label,value,value_label";
const MESSAGES: &str = "from,to,from_row,to_row,call_ns,send_ns,receive_ns,end_ns,bytes,tag";

/// Text between quotes, which are doubled inside.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('"', "\"\""))
    }
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
    let (states, mut of_states) = begin(0, STATES)?;
    let (events, mut of_events) = begin(1, EVENTS)?;
    let (messages, mut of_messages) = begin(2, MESSAGES)?;
    let (names, ranks) = (reader.names(), reader.ranks_of_rows().to_vec());
    reader.try_read(|record| {
        let (file, written) = match record {
            Record::State { .. } => (0, line(&mut of_states, &ranks, &names, record)),
            Record::Event { .. } => (1, line(&mut of_events, &ranks, &names, record)),
            Record::Communication { .. } => (2, line(&mut of_messages, &ranks, &names, record)),
        };
        written.map_err(|source| Error::Io { path: paths[file].clone(), source })
    })?;
    for (out, path) in [&mut of_states, &mut of_events, &mut of_messages].into_iter().zip(&paths) {
        out.flush().map_err(Error::io(path))?;
    }
    for partial in [states, events, messages] {
        partial.publish()?;
    }
    Ok(paths)
}

fn line(out: &mut impl Write, ranks: &[u32], names: &Names, record: Record<'_>) -> io::Result<()> {
    match record {
        Record::State { row, cpu, begin_ns, end_ns, state } => {
            let (rank, label) = (ranks[row], names.state_label(state));
            writeln!(out, "{rank},{row},{cpu},{begin_ns},{end_ns},{state},{}", Quoted(&label))
        }
        Record::Event { row, cpu, time_ns, values } => {
            let rank = ranks[row];
            values.iter().try_for_each(|(kind, value)| {
                let (of_kind, of_value) =
                    (names.type_label(*kind), names.value_label(*kind, *value));
                let (of_kind, of_value) = (Quoted(&of_kind), Quoted(&of_value));
                writeln!(out, "{rank},{row},{cpu},{time_ns},{kind},{of_kind},{value},{of_value}")
            })
        }
        Record::Communication {
            sender,
            receiver,
            logical_send_ns,
            send_ns,
            receive_ns,
            logical_receive_ns,
            bytes,
            tag,
            ..
        } => {
            let (from, to) = (ranks[sender], ranks[receiver]);
            writeln!(
                out,
                "{from},{to},{sender},{receiver},{logical_send_ns},{send_ns},{receive_ns},\
                 {logical_receive_ns},{bytes},{tag}"
            )
        }
    }
}
