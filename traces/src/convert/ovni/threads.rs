//! Threads of ovni, which follow the records of their rows.

use std::path::Path;

use super::label_text::label_text;
use super::marks::{Marks, STATE};
use super::metadata::Location;
use super::streams::Streams;
use super::tasks::{Body, Change, Shown, Step, Tasks};
use crate::State;
use crate::error::Result;
use crate::paraver::{EventKind, Reader, Record};

const NOT_CREATED: u32 = State::NotCreated.number();
const RESTING: [u32; 2] = [State::Idle.number(), State::Blocked.number()];
const TASKS: [u32; 2] = [EventKind::TaskId.number(), EventKind::TaskType.number()];

/// Clock of what is known before the trace begins.
const BEFORE: u64 = 0;

/// Second pass over a trace: writes events of threads.
pub(super) struct Threads<'a> {
    path: &'a Path,
    streams: &'a mut Streams,
    tasks: Tasks,
    marks: Marks,
    threads: Vec<Thread>,
    left_out: LeftOut,
}

/// Numbers of what the streams lack of the trace.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeftOut {
    pub(super) messages: u64,
    pub(super) control_messages: u64,
    pub(super) values: u64,
}

/// Thread of a row.
#[derive(Clone, Debug)]
struct Thread {
    rank: u32,
    shown: Shown,
    body: Option<Body>,
    /// End of the last state.
    state_until_ns: u64,
    is_absent: bool,
    is_paused: bool,
    is_resting: bool,
    /// Value of each mark; 0 for none.
    marks: Vec<i64>,
}

impl<'a> Threads<'a> {
    /// Begins all threads, and creates the tasks by the first one of each rank.
    pub(super) fn begin(
        (reader, path): (&Reader, &'a Path),
        locations: &[Location],
        tasks: Tasks,
        marks: Marks,
        streams: &'a mut Streams,
    ) -> Result<Self> {
        let thread = |rank: &u32| Thread {
            rank: *rank,
            shown: Shown::default(),
            body: None,
            state_until_ns: 0,
            is_absent: false,
            is_paused: false,
            is_resting: false,
            marks: vec![0; marks.count()],
        };
        let threads: Vec<_> = reader.ranks_of_rows().iter().map(thread).collect();
        let names = reader.names();
        let mut created = None;
        for (row, Thread { rank, .. }) in threads.iter().enumerate() {
            let mut payload = [0; 16];
            payload[..4].copy_from_slice(&locations[row].cpu.to_ne_bytes());
            payload[4..8].copy_from_slice(&(-1_i32).to_ne_bytes());
            streams.event(row, b"OHx", BEFORE, &payload)?;
            streams.event(row, b"VHw", BEFORE, &[])?;
            if created.replace(*rank) == Some(*rank) {
                continue;
            }
            for kind in tasks.types(*rank) {
                let name = names.value_label(EventKind::TaskType.number(), kind.into());
                let mut data = kind.to_ne_bytes().to_vec();
                data.extend_from_slice(label_text(&name).as_bytes());
                data.push(0);
                streams.jumbo(row, b"VYc", BEFORE, &data)?;
            }
            for (id, kind, is_parallel) in tasks.created(*rank) {
                let name = if is_parallel { b"VTC" } else { b"VTc" };
                streams.event(row, name, BEFORE, &pair(id, kind))?;
            }
        }
        Ok(Self { path, streams, tasks, marks, threads, left_out: LeftOut::default() })
    }

    pub(super) fn record(&mut self, record: Record<'_>) -> Result<()> {
        match record {
            Record::State { row, begin_ns, end_ns, state, .. } => {
                self.settle(row, begin_ns)?;
                let thread = &mut self.threads[row];
                thread.is_absent = state == NOT_CREATED;
                thread.state_until_ns = end_ns;
                self.enter_state(row, begin_ns, (state != NOT_CREATED).then_some(state))?;
                self.rest(row, begin_ns)
            }
            Record::Event { row, time_ns, values, .. } => {
                self.settle(row, time_ns)?;
                let mut shown = self.threads[row].shown;
                shown.event(time_ns, values, |change| self.change(row, change))?;
                self.threads[row].shown = shown;
                for (kind, value) in values.iter().filter(|(kind, _)| !TASKS.contains(kind)) {
                    match self.marks.of(*kind) {
                        Some(mark) => self.mark(row, mark, *value, time_ns)?,
                        None => self.left_out.values += 1,
                    }
                }
                self.rest(row, time_ns)
            }
            Record::Communication(message) => {
                match message.control() {
                    None => self.left_out.messages += 1,
                    Some(_) => self.left_out.control_messages += 1,
                }
                Ok(())
            }
        }
    }

    /// Ends all threads.
    pub(super) fn finish(mut self, end_ns: u64) -> Result<LeftOut> {
        for row in 0..self.threads.len() {
            self.settle(row, end_ns + 1)?;
            self.leave(row, end_ns)?;
            self.enter_state(row, end_ns, None)?;
            for mark in 0..self.marks.count() {
                self.mark(row, mark, 0, end_ns)?;
            }
            self.wake(row, end_ns)?;
            self.event(row, b"VHW", end_ns, &[])?;
            self.event(row, b"OHe", end_ns, &[])?;
        }
        Ok(self.left_out)
    }

    /// Completes what earlier records have left open for one at `time_ns`.
    fn settle(&mut self, row: usize, time_ns: u64) -> Result<()> {
        let mut shown = self.threads[row].shown;
        shown.settle(time_ns, |change| self.change(row, change))?;
        self.threads[row].shown = shown;
        let until_ns = self.threads[row].state_until_ns;
        if time_ns > until_ns { self.enter_state(row, until_ns, None) } else { Ok(()) }
    }

    fn change(&mut self, row: usize, change: Change) -> Result<()> {
        self.leave(row, change.time_ns)?;
        let rank = self.threads[row].rank;
        let Some((step, body)) = self.tasks.enter(rank, change, self.path)? else {
            return Ok(());
        };
        self.threads[row].body = Some(body);
        self.step(row, step, body, change.time_ns)
    }

    /// Ends or pauses the body of a thread.
    fn leave(&mut self, row: usize, time_ns: u64) -> Result<()> {
        let thread = &mut self.threads[row];
        let Some(body) = thread.body.take() else { return Ok(()) };
        let step = self.tasks.leave(thread.rank, body);
        self.step(row, step, body, time_ns)
    }

    fn step(&mut self, row: usize, step: Step, body: Body, time_ns: u64) -> Result<()> {
        self.wake(row, time_ns)?;
        let name = match step {
            Step::Execute => b"VTx",
            Step::Pause => b"VTp",
            Step::Resume => b"VTr",
            Step::End => b"VTe",
        };
        self.event(row, name, time_ns, &pair(body.task, body.number))
    }

    fn enter_state(&mut self, row: usize, time_ns: u64, state: Option<u32>) -> Result<()> {
        let is_resting = state.is_some_and(|state| RESTING.contains(&state));
        if is_resting != self.threads[row].is_resting {
            self.threads[row].is_resting = is_resting;
            self.wake(row, time_ns)?;
            self.event(row, if is_resting { b"VPr" } else { b"VPp" }, time_ns, &[])?;
        }
        if state.is_some() {
            self.wake(row, time_ns)?;
        }
        self.mark(row, STATE, state.map_or(0, |state| i64::from(state) + 1), time_ns)
    }

    fn mark(&mut self, row: usize, mark: usize, value: i64, time_ns: u64) -> Result<()> {
        let before = std::mem::replace(&mut self.threads[row].marks[mark], value);
        if before == value {
            return Ok(());
        }
        let events = [(b"OM]", before), (b"OM[", value)];
        events.into_iter().filter(|(_, value)| *value != 0).try_for_each(|(name, value)| {
            let mut payload = [0; 12];
            payload[..8].copy_from_slice(&value.to_ne_bytes());
            payload[8..].copy_from_slice(&(mark as i32).to_ne_bytes());
            self.event(row, name, time_ns, &payload)
        })
    }

    /// Resumes a thread that is paused.
    fn wake(&mut self, row: usize, time_ns: u64) -> Result<()> {
        if std::mem::take(&mut self.threads[row].is_paused) {
            self.event(row, b"OHr", time_ns, &[])?;
        }
        Ok(())
    }

    /// Pauses a thread whose row does not exist and shows no task.
    fn rest(&mut self, row: usize, time_ns: u64) -> Result<()> {
        let thread = &mut self.threads[row];
        if thread.is_absent && thread.body.is_none() && !thread.is_paused {
            thread.is_paused = true;
            self.event(row, b"OHp", time_ns, &[])?;
        }
        Ok(())
    }

    fn event(&mut self, row: usize, name: &[u8; 3], time_ns: u64, payload: &[u8]) -> Result<()> {
        self.streams.event(row, name, BEFORE + 1 + time_ns, payload)
    }
}

fn pair(first: u32, second: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    bytes
}
