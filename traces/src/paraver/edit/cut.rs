//! A part of a trace.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use super::begin::{begin_comment, begin_of};
use super::new_trace::NewTrace;
use super::prv_file::PrvFile;
use crate::State;
use crate::error::{Error, Result};
use crate::paraver::check::{Report, Visitor};
use crate::paraver::partial::Partial;
use crate::paraver::{Reader, Record, TraceFiles};

/// Writes the part of the trace at `prv` from `from_ns` to `to_ns`, or its end, as the trace `out`, whose
/// name ends in `.prv`, with the labels and names of `prv`. Its times begin at 0.
///
/// States that are open at an edge are shown from or to it, and values that last are set again at
/// the begin. A message of which a part is outside is left out, and a comment counts those.
///
/// **Errors**: those of the files, and [`BadRecord`](Error::BadRecord) at the first line that Paraver
/// would refuse or misread. [`NoTime`](Error::NoTime) if no time of the trace is between the two.
/// [`SameFile`](Error::SameFile) and [`NotPrv`](Error::NotPrv) for a name that `out` cannot have. An
/// earlier trace of that name then stays.
pub fn cut(
    prv: impl AsRef<Path>,
    from_ns: u64,
    to_ns: Option<u64>,
    out: impl AsRef<Path>,
) -> Result<TraceFiles> {
    let prv = prv.as_ref();
    let new = NewTrace::new(out.as_ref(), &[prv])?;
    let mut reader = Reader::open(prv)?;
    let part = reader.part(from_ns, to_ns)?;
    let path = new.prv();
    let records = Partial::fill(path.clone(), |out| {
        let out = PrvFile::begin(out, &reader, part.end - part.start).map_err(Error::io(&path))?;
        let mut cut = Cut {
            has_end: part.end == reader.duration_ns(),
            part,
            levels: Levels {
                rows: vec![(0, BTreeMap::new()); reader.ranks_of_rows().len()],
                kinds: reader.levels(),
            },
            begin_ns: 0,
            begun: false,
            crossing: 0,
            out,
            path: &path,
            written: Ok(()),
        };
        reader.visit(&mut cut)?;
        cut.finish().map_err(Error::io(&path))
    })?;
    new.publish(records, &reader, None)
}

/// Values that last.
struct Levels {
    /// Cpu that each row shows where the part begins, 0 for none, and the values of its events; a value
    /// of 0 is none.
    rows: Vec<(u32, BTreeMap<u32, i64>)>,
    kinds: HashSet<u32>,
}

struct Cut<'a, W> {
    part: Range<u64>,
    /// `true` if the part ends with the trace, whose last moment belongs to it.
    has_end: bool,
    levels: Levels,
    /// Begin of the whole trace on the clock of its run.
    begin_ns: u64,
    /// `true` once all records from before the part were read.
    begun: bool,
    /// Number of messages across an edge.
    crossing: u64,
    out: PrvFile<W>,
    path: &'a Path,
    written: io::Result<()>,
}

impl<W: Write> Visitor for Cut<'_, W> {
    fn record(&mut self, record: Record<'_>) {
        if self.written.is_ok() {
            self.written = self.take(record);
        }
    }

    fn comment(&mut self, text: &[u8]) {
        match begin_of(text) {
            Some(begin_ns) => self.begin_ns = begin_ns,
            None if self.written.is_ok() => self.written = self.out.comment(text),
            None => {}
        }
    }

    fn communicator(&mut self, line: &[u8]) {
        if self.written.is_ok() {
            self.written = self.out.line(line);
        }
    }

    fn line_ends(&mut self, _: &Report) -> Result<()> {
        std::mem::replace(&mut self.written, Ok(())).map_err(Error::io(self.path))
    }
}

impl<W: Write> Cut<'_, W> {
    fn take(&mut self, record: Record<'_>) -> io::Result<()> {
        let (first, last) = (record.first_ns(), record.last_ns());
        if first >= self.part.start {
            self.begin()?;
        }
        let begins_inside = first >= self.part.start && self.is_before_end(first);
        match record {
            Record::Event { row, values, .. } if first < self.part.start => {
                self.levels.set(row, values);
                Ok(())
            }
            Record::Communication(_) if !(begins_inside && last <= self.part.end) => {
                let crosses = first < self.part.end && last > self.part.start;
                self.crossing += u64::from(crosses);
                Ok(())
            }
            // The states of before that last into the part.
            Record::State { row, cpu, state, .. }
                if first < self.part.start && last > self.part.start =>
            {
                if state != State::NotCreated.number() {
                    self.levels.rows[row].0 = cpu;
                }
                self.write(record)
            }
            _ if begins_inside => self.write(record),
            _ => Ok(()),
        }
    }

    fn is_before_end(&self, time_ns: u64) -> bool {
        time_ns < self.part.end || (self.has_end && time_ns == self.part.end)
    }

    /// Writes a record with the times of the part.
    fn write(&mut self, mut record: Record<'_>) -> io::Result<()> {
        let Range { start, end } = self.part;
        record.map_times(|time| time.clamp(start, end) - start);
        self.out.record(&record)
    }

    /// Sets the values again that last from before the part.
    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        for (row, (cpu, values)) in self.levels.rows.iter().enumerate() {
            let values: Vec<(u32, i64)> =
                values.iter().map(|(kind, value)| (*kind, *value)).collect();
            let cpu = *cpu;
            self.out.record(&Record::Event { row, cpu, time_ns: 0, values: &values })?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.begin()?;
        let begin_ns = self.begin_ns.saturating_add(self.part.start);
        self.out.comment(begin_comment(begin_ns).as_bytes())?;
        if self.crossing > 0 {
            let text = format!("{} messages crossed an edge of this part", self.crossing);
            self.out.comment(text.as_bytes())?;
        }
        Ok(())
    }
}

impl Levels {
    fn set(&mut self, row: usize, values: &[(u32, i64)]) {
        let (_, lasting) = &mut self.rows[row];
        for (kind, value) in values.iter().filter(|(kind, _)| self.kinds.contains(kind)) {
            match value {
                0 => lasting.remove(kind),
                value => lasting.insert(*kind, *value),
            };
        }
    }
}
