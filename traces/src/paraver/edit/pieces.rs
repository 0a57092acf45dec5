//! Records of several traces, each read by a thread of its own.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use super::begin::begin_of;
use super::halves::Half;
use super::piece_clock::PieceClock;
use crate::State;
use crate::error::{Error, Result};
use crate::paraver::check::{Report, Visitor};
use crate::paraver::clock_comment::reading_of;
use crate::paraver::{Reader, Record};

const NOT_CREATED: u32 = State::NotCreated.number();

/// Lines sent at once, and batches that may wait.
const BATCH: usize = 1_024;
pub(super) const BATCHES: usize = 4;

/// Line of a trace.
#[derive(Debug)]
pub(super) enum Line {
    Record(Record<'static>),
    /// Event, with values of its own.
    Event {
        row: usize,
        cpu: u32,
        time_ns: u64,
        values: Vec<(u32, i64)>,
    },
    Comment(Vec<u8>),
    Communicator(Vec<u8>),
}

/// First and last time of the states of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) cpu: u32,
    /// `true` if one of them is not `Not created`, or the row has events.
    pub(super) is_used: bool,
}

/// Contents of a trace as far as a merge must know them before it writes.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) path: PathBuf,
    pub(super) duration_ns: u64,
    pub(super) clock: PieceClock,
    pub(super) rows: Vec<Option<Extent>>,
    pub(super) halves: Vec<Half>,
    /// Rank of each row.
    pub(super) ranks: Vec<u32>,
}

impl Piece {
    /// Reads a trace once.
    pub(super) fn survey(reader: &mut Reader) -> Result<Self> {
        let mut piece = Self {
            path: reader.path().to_owned(),
            duration_ns: reader.duration_ns(),
            clock: PieceClock::default(),
            rows: vec![None; reader.ranks_of_rows().len()],
            halves: Vec::new(),
            ranks: reader.ranks_of_rows().to_vec(),
        };
        reader.visit(&mut piece)?;
        Ok(piece)
    }
}

impl Visitor for Piece {
    fn record(&mut self, record: Record<'_>) {
        match record {
            Record::State { row, cpu, begin_ns, end_ns, state } => {
                let is_used = state != NOT_CREATED;
                let extent =
                    self.rows[row].get_or_insert(Extent { begin_ns, end_ns, cpu, is_used });
                extent.end_ns = extent.end_ns.max(end_ns);
                extent.is_used |= is_used;
            }
            Record::Event { row, time_ns, values, .. } => {
                let rank = self.ranks[row];
                let at = |from: usize| Half::of(&values[from..], rank, row, time_ns);
                self.halves.extend((0..values.len()).filter_map(at));
                if let Some(extent) = &mut self.rows[row] {
                    extent.is_used = true;
                }
            }
            Record::Communication(_) => {}
        }
    }

    fn comment(&mut self, text: &[u8]) {
        self.clock.begin_ns = begin_of(text).unwrap_or(self.clock.begin_ns);
        reading_of(text).into_iter().for_each(|reading| self.clock.add(reading));
    }
}

/// Sends all lines of a trace; an error is the last.
pub(super) fn send(path: &Path, batches: SyncSender<Result<Vec<Line>>>) {
    let mut sender = Sender { path: path.to_owned(), batch: Vec::new(), batches, is_wanted: true };
    let read = Reader::open(path).and_then(|mut reader| reader.visit(&mut sender));
    sender.flush();
    if let Err(error) = read
        && sender.is_wanted
    {
        // The receiver has ended if it does not want it.
        let _ = sender.batches.send(Err(error));
    }
}

struct Sender {
    path: PathBuf,
    batch: Vec<Line>,
    batches: SyncSender<Result<Vec<Line>>>,
    /// `false` once the receiver has ended.
    is_wanted: bool,
}

impl Sender {
    fn flush(&mut self) {
        self.is_wanted &= self.batches.send(Ok(std::mem::take(&mut self.batch))).is_ok();
    }
}

impl Visitor for Sender {
    fn record(&mut self, record: Record<'_>) {
        self.batch.push(match record {
            Record::Event { row, cpu, time_ns, values } => {
                Line::Event { row, cpu, time_ns, values: values.to_vec() }
            }
            Record::State { row, cpu, begin_ns, end_ns, state } => {
                Line::Record(Record::State { row, cpu, begin_ns, end_ns, state })
            }
            Record::Communication(message) => Line::Record(Record::Communication(message)),
        });
    }

    fn comment(&mut self, text: &[u8]) {
        self.batch.push(Line::Comment(text.to_owned()));
    }

    fn communicator(&mut self, line: &[u8]) {
        self.batch.push(Line::Communicator(line.to_owned()));
    }

    fn line_ends(&mut self, _: &Report) -> Result<()> {
        if self.batch.len() >= BATCH {
            self.flush();
        }
        if self.is_wanted {
            Ok(())
        } else {
            Err(Error::io(&self.path)(ErrorKind::BrokenPipe.into()))
        }
    }
}
