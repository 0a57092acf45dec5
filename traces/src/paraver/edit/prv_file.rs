//! Writer of the lines of a `.prv` file from records.

use std::io::{self, Write};

use crate::paraver::{Communication, Reader, Record};

/// Lines of a new trace whose rows are those of another.
pub(super) struct PrvFile<W> {
    out: W,
    /// Application, task and thread of each row, as `1:2:1`.
    rows: Vec<String>,
}

impl<W: Write> PrvFile<W> {
    /// Writes the header: that of `like`, with another length.
    pub(super) fn begin(mut out: W, like: &Reader, duration_ns: u64) -> io::Result<Self> {
        let name = |row| like.row_name(row).replace('.', ":");
        let rows = (0..like.ranks_of_rows().len()).map(name).collect();
        let (started, objects) = (like.started(), like.objects_text());
        writeln!(out, "#Paraver ({started}):{duration_ns:020}_ns:{objects}")?;
        Ok(Self { out, rows })
    }

    pub(super) fn comment(&mut self, text: &[u8]) -> io::Result<()> {
        self.out.write_all(b"# ")?;
        self.line(text)
    }

    pub(super) fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.out.write_all(line)?;
        self.out.write_all(b"\n")
    }

    /// Writes a record; nothing for an event without values.
    pub(super) fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        let Self { out, rows } = self;
        match *record {
            Record::State { row, cpu, begin_ns, end_ns, state } => {
                writeln!(out, "1:{cpu}:{}:{begin_ns}:{end_ns}:{state}", rows[row])
            }
            Record::Event { values: [], .. } => Ok(()),
            Record::Event { row, cpu, time_ns, values } => {
                write!(out, "2:{cpu}:{}:{time_ns}", rows[row])?;
                for (kind, value) in values {
                    write!(out, ":{kind}:{value}")?;
                }
                writeln!(out)
            }
            Record::Communication(Communication {
                sender,
                sender_cpu,
                receiver,
                receiver_cpu,
                logical_send_ns,
                send_ns,
                receive_ns,
                logical_receive_ns,
                bytes,
                tag,
            }) => {
                let (sender, receiver) = (&rows[sender], &rows[receiver]);
                writeln!(
                    out,
                    "3:{sender_cpu}:{sender}:{logical_send_ns}:{send_ns}:\
                     {receiver_cpu}:{receiver}:{logical_receive_ns}:{receive_ns}:{bytes}:{tag}"
                )
            }
        }
    }
}
