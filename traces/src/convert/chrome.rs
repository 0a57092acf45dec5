//! JSON of Chrome's trace viewer: a process for each rank, and two threads for each row, one of tasks and
//! messages, one of states. Times are microseconds with three digits behind the point.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};

use super::json_text::JsonText;
use super::sequence::{Form, Row};
use crate::paraver::Communication;

pub(super) struct Chrome<W> {
    out: W,
    ranks: Vec<u32>,
    begun: bool,
}

/// Nanoseconds as microseconds.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

impl<W: Write> Chrome<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, ranks: Vec::new(), begun: false }
    }

    /// Writes an event of a kind on a thread, with more of its fields.
    fn event(
        &mut self,
        kind: char,
        row: usize,
        track: usize,
        rest: fmt::Arguments<'_>,
    ) -> io::Result<()> {
        let start = if std::mem::replace(&mut self.begun, true) { ",\n" } else { "" };
        let (pid, tid) = (self.ranks[row], row * 2 + track);
        write!(self.out, "{start}{{\"ph\":\"{kind}\",\"pid\":{pid},\"tid\":{tid},{rest}}}")
    }

    fn name(&mut self, row: usize, track: usize, what: &str, name: &str) -> io::Result<()> {
        let name = JsonText(name);
        self.event(
            'M',
            row,
            track,
            format_args!("\"name\":\"{what}\",\"args\":{{\"name\":{name}}}"),
        )
    }
}

impl<W: Write> Form for Chrome<W> {
    fn begin(&mut self, rows: &[Row]) -> io::Result<()> {
        self.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        self.ranks = rows.iter().map(|row| row.rank).collect();
        let mut ranks = HashSet::new();
        for Row { index, rank, name } in rows {
            if ranks.insert(rank) {
                self.name(*index, 0, "process_name", &format!("rank {rank}"))?;
            }
            self.name(*index, 0, "thread_name", name)?;
            self.name(*index, 1, "thread_name", &format!("{name} state"))?;
        }
        Ok(())
    }

    fn begin_task(&mut self, row: usize, name: &str, time_ns: u64) -> io::Result<()> {
        let (name, time) = (JsonText(name), Micros(time_ns));
        self.event('B', row, 0, format_args!("\"cat\":\"task\",\"name\":{name},\"ts\":{time}"))
    }

    fn end_task(&mut self, row: usize, time_ns: u64) -> io::Result<()> {
        self.event('E', row, 0, format_args!("\"cat\":\"task\",\"ts\":{}", Micros(time_ns)))
    }

    fn state(&mut self, row: usize, name: &str, begin_ns: u64, end_ns: u64) -> io::Result<()> {
        let (name, begin) = (JsonText(name), Micros(begin_ns));
        let duration = Micros(end_ns.saturating_sub(begin_ns));
        let rest =
            format_args!("\"cat\":\"state\",\"name\":{name},\"ts\":{begin},\"dur\":{duration}");
        self.event('X', row, 1, rest)
    }

    fn counter(
        &mut self,
        row: usize,
        (_, name): (u32, &str),
        value: i64,
        time_ns: u64,
    ) -> io::Result<()> {
        let (name, time) = (JsonText(name), Micros(time_ns));
        let rest = format_args!(
            "\"name\":{name},\"id\":{row},\"ts\":{time},\"args\":{{\"value\":{value}}}"
        );
        self.event('C', row, 0, rest)
    }

    fn message(&mut self, number: u64, message: &Communication) -> io::Result<()> {
        let &Communication { sender, receiver, send_ns, receive_ns, bytes, tag, .. } = message;
        let (kind, name) = match message.control() {
            None => ("message", "message"),
            Some(control) => ("control", control.name()),
        };
        let head = format_args!("\"cat\":\"{kind}\",\"name\":\"{name}\"");
        let (send, receive) = (Micros(send_ns), Micros(receive_ns));
        let rest = format_args!(
            "{head},\"id\":{number},\"ts\":{send},\"args\":{{\"bytes\":{bytes},\"tag\":{tag}}}"
        );
        self.event('s', sender, 0, rest)?;
        let rest = format_args!("{head},\"id\":{number},\"bp\":\"e\",\"ts\":{receive}");
        self.event('f', receiver, 0, rest)
    }

    fn end(&mut self, lost: &[String]) -> io::Result<()> {
        self.out.write_all(b"\n],\"otherData\":{\"lost\":[")?;
        for (index, lost) in lost.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(self.out, "{comma}{}", JsonText(lost))?;
        }
        self.out.write_all(b"]}}\n")
    }
}
