//! Slices, states, counters and messages of a trace, in the order of its records.

use std::collections::HashSet;
use std::io;

use crate::State;
use crate::paraver::{Communication, EventKind, Names, Reader, Record};

const NOT_CREATED: u32 = State::NotCreated.number();
const TASK_ID: u32 = EventKind::TaskId.number();
const TASK_TYPE: u32 = EventKind::TaskType.number();

/// Row of a trace.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) index: usize,
    pub(super) rank: u32,
    pub(super) name: String,
}

/// Receiver of the sequence, which writes it down. Rows are indexes.
pub(super) trait Form {
    fn begin(&mut self, rows: &[Row]) -> io::Result<()>;
    fn begin_task(&mut self, row: usize, name: &str, time_ns: u64) -> io::Result<()>;
    fn end_task(&mut self, row: usize, time_ns: u64) -> io::Result<()>;
    fn state(&mut self, row: usize, name: &str, begin_ns: u64, end_ns: u64) -> io::Result<()>;
    fn counter(
        &mut self,
        row: usize,
        kind: (u32, &str),
        value: i64,
        time_ns: u64,
    ) -> io::Result<()>;
    /// Takes a message with its number, from 1.
    fn message(&mut self, number: u64, message: &Communication) -> io::Result<()>;
    fn end(&mut self, lost: &[String]) -> io::Result<()>;
}

pub(super) struct Sequence<F> {
    form: F,
    names: Names,
    end_ns: u64,
    /// Event types whose values are not numbers to be drawn.
    other_kinds: HashSet<u32>,
    /// Task type that each row shows; 0 outside tasks.
    shown: Vec<i64>,
    messages: u64,
}

impl<F: Form> Sequence<F> {
    pub(super) fn new(reader: &Reader, mut form: F) -> io::Result<Self> {
        let row = |(index, rank): (usize, &u32)| {
            let name = reader.row_label(index).into_owned();
            Row { index, rank: *rank, name }
        };
        let rows: Vec<Row> = reader.ranks_of_rows().iter().enumerate().map(row).collect();
        form.begin(&rows)?;
        let no_level = |kind: &EventKind| !kind.is_level() || is_identity(*kind);
        let ours = EventKind::ALL.into_iter().filter(no_level).map(EventKind::number);
        Ok(Self {
            form,
            names: reader.names(),
            end_ns: reader.duration_ns(),
            other_kinds: ours.collect(),
            shown: vec![0; rows.len()],
            messages: 0,
        })
    }

    pub(super) fn record(&mut self, record: Record<'_>) -> io::Result<()> {
        match record {
            Record::State { state: NOT_CREATED, .. } => Ok(()),
            Record::State { row, begin_ns, end_ns, state, .. } => {
                self.form.state(row, &self.names.state_label(state), begin_ns, end_ns)
            }
            Record::Event { row, time_ns, values, .. } => self.event(row, time_ns, values),
            Record::Communication(message) => {
                self.messages += 1;
                self.form.message(self.messages, &message)
            }
        }
    }

    fn event(&mut self, row: usize, time_ns: u64, values: &[(u32, i64)]) -> io::Result<()> {
        for (index, (kind, value)) in values.iter().enumerate() {
            match *kind {
                TASK_TYPE => self.show(row, *value, time_ns)?,
                // A task of the same type, unless the next value says otherwise.
                TASK_ID if values.get(index + 1).is_none_or(|(kind, _)| *kind != TASK_TYPE) => {
                    self.show(row, self.shown[row], time_ns)?;
                }
                _ => {}
            }
        }
        for (kind, value) in values {
            if !self.other_kinds.contains(kind) && !self.names.has_labelled_values(*kind) {
                let name = self.names.type_label(*kind);
                self.form.counter(row, (*kind, &name), *value, time_ns)?;
            }
        }
        Ok(())
    }

    /// Ends the slice that a row shows, and begins the next.
    fn show(&mut self, row: usize, label: i64, time_ns: u64) -> io::Result<()> {
        if std::mem::replace(&mut self.shown[row], label) != 0 {
            self.form.end_task(row, time_ns)?;
        }
        match label {
            0 => Ok(()),
            _ => self.form.begin_task(row, &self.names.value_label(TASK_TYPE, label), time_ns),
        }
    }

    pub(super) fn finish(mut self, lost: &[String]) -> io::Result<()> {
        for row in 0..self.shown.len() {
            self.show(row, 0, self.end_ns)?;
        }
        self.form.end(lost)
    }
}

/// Returns `true` for values that name something, so that a curve of them says nothing.
fn is_identity(kind: EventKind) -> bool {
    !matches!(
        kind,
        EventKind::RoundsOpen
            | EventKind::OutstandingRequests
            | EventKind::TasksReady
            | EventKind::TasksNotDone
            | EventKind::Step
            | EventKind::SlowCores
    )
}
