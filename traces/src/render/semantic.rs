//! Values of the objects of a view over time, from the records of a trace.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::options::RenderOptions;
use super::view::{Level, Rows, Source, Transit, View};
use crate::State;
use crate::paraver::{Communication, Reader, Record};

const NOT_CREATED: u32 = State::NotCreated.number();

/// Value that an object has had for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) object: usize,
    pub(super) value: i64,
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
}

/// Objects of a picture.
pub(super) struct Objects {
    pub(super) level: Level,
    /// Object of each row of the trace, or of each cpu; `None` for those that are not shown.
    of: Vec<Option<usize>>,
    /// Rows of the trace that are shown.
    rows: Range<usize>,
    /// Number of the first object in the trace.
    first: usize,
    pub(super) count: usize,
}

impl Objects {
    pub(super) fn new(reader: &Reader, options: &RenderOptions) -> Self {
        let level = match options.rows {
            None => options.view.level,
            Some(Rows::Worker) => Level::Thread,
            Some(Rows::Rank) => Level::Task,
            Some(Rows::Cpu) => Level::Cpu,
        };
        let ranks = reader.ranks_of_rows();
        let shown = options.ranks.clone().unwrap_or(0..u32::MAX);
        let row_of = |bound: u32| ranks.partition_point(|rank| *rank < bound);
        let rows = row_of(shown.start)..row_of(shown.end);
        let all: Vec<usize> = match level {
            Level::Workload => vec![0; ranks.len()],
            Level::Task => ranks.iter().map(|rank| *rank as usize).collect(),
            Level::Thread => (0..ranks.len()).collect(),
            Level::Cpu => (0..reader.cpus() as usize).collect(),
        };
        let is_shown = |index: &usize| level == Level::Cpu || rows.contains(index);
        let drawn = || (0..all.len()).filter(is_shown).map(|index| all[index]);
        let first = drawn().min().unwrap_or(0);
        let count = drawn().max().map_or(0, |last| last - first + 1);
        let object = |index: usize| is_shown(&index).then(|| all[index] - first);
        let of = (0..all.len()).map(object).collect();
        Self { level, of, rows, first, count }
    }

    /// Returns the index of a row that is shown, or of its cpu if the objects are cpus and it has one.
    fn index(&self, row: usize, cpu: u32) -> Option<usize> {
        if !self.rows.contains(&row) {
            return None;
        }
        if self.level == Level::Cpu { (cpu as usize).checked_sub(1) } else { Some(row) }
    }

    /// Returns the object of a row or its cpu.
    pub(super) fn object(&self, row: usize, cpu: u32) -> Option<usize> {
        self.of.get(self.index(row, cpu)?).copied().flatten()
    }

    /// Returns the number of an object in the trace.
    pub(super) fn number(&self, object: usize) -> usize {
        self.first + object
    }

    /// Returns the name of an object.
    pub(super) fn name(&self, reader: &Reader, object: usize) -> String {
        let number = self.number(object);
        match self.level {
            Level::Workload if self.rows.len() == self.of.len() => "all ranks".to_owned(),
            Level::Workload => "ranks shown".to_owned(),
            Level::Task => format!("rank {number}"),
            Level::Thread => reader.row_label(number).into_owned(),
            Level::Cpu => format!("cpu {}", number + 1),
        }
    }
}

/// Values as they change, in memory for what is open.
pub(super) struct Semantic<'a> {
    view: &'a View,
    objects: Objects,
    /// Latest value of each row or cpu, and since when.
    values: Vec<(i64, u64)>,
    sums: Option<Sums>,
    /// `true` if 0 is a value that is shown.
    of_zero: bool,
}

impl<'a> Semantic<'a> {
    pub(super) fn new(view: &'a View, objects: Objects, of_zero: bool) -> Self {
        let values = vec![(0, 0); objects.of.len()];
        let sums = view.is_sum().then(|| Sums::new(objects.count));
        Self { view, objects, values, sums, of_zero }
    }

    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Takes a record, and gives what has ended to `visit`.
    pub(super) fn record(&mut self, record: Record<'_>, visit: &mut impl FnMut(Interval)) {
        if let Some(sums) = &mut self.sums {
            sums.advance(record.first_ns(), self.of_zero, visit);
        }
        if matches!(&record, Record::Communication(message) if !self.view.has(message)) {
            return;
        }
        match (record, &self.view.source) {
            (Record::State { row, cpu, begin_ns, end_ns, state }, source) => {
                let value = match source {
                    Source::State if state != NOT_CREATED => state.into(),
                    Source::InState(states) if states.contains(&state) => 1,
                    Source::StateDuration(states) if states.contains(&state) => {
                        number(end_ns.saturating_sub(begin_ns))
                    }
                    _ => return,
                };
                if let Some(object) = self.objects.object(row, cpu) {
                    self.add(Interval { object, value, begin_ns, end_ns }, visit);
                }
            }
            (Record::Event { row, cpu, time_ns, values }, Source::Event(kind)) => {
                for (_, value) in values.iter().filter(|(of, _)| of == kind) {
                    self.show(row, cpu, *value, time_ns, visit);
                }
            }
            (Record::Communication(message), Source::LastSend) => {
                let Communication { sender, sender_cpu, logical_send_ns, .. } = message;
                let length = message.logical_receive_ns.saturating_sub(logical_send_ns);
                self.show(sender, sender_cpu, number(length), logical_send_ns, visit);
            }
            (Record::Communication(message), Source::InTransit(transit)) => {
                let Communication { sender, sender_cpu, send_ns, receive_ns, bytes, .. } = message;
                let value = match transit {
                    Transit::Messages => 1,
                    Transit::Bytes => number(bytes),
                    Transit::Bandwidth => {
                        let length = receive_ns.saturating_sub(send_ns).max(1);
                        (bytes as f64 * 1e6 / length as f64) as i64
                    }
                };
                if let Some(object) = self.objects.object(sender, sender_cpu) {
                    let (begin_ns, end_ns) = (send_ns, receive_ns);
                    self.add(Interval { object, value, begin_ns, end_ns }, visit);
                }
            }
            _ => {}
        }
    }

    /// Gives the last values, which last until `end_ns`.
    pub(super) fn finish(&mut self, end_ns: u64, visit: &mut impl FnMut(Interval)) {
        // Other values have had their ends already.
        if matches!(self.view.source, Source::Event(_) | Source::LastSend) {
            for index in 0..self.values.len() {
                self.show_index(index, 0, end_ns, visit);
            }
        }
        if let Some(sums) = &mut self.sums {
            sums.finish(end_ns, self.of_zero, visit);
        }
    }

    /// Sets the latest value of a row or its cpu.
    fn show(
        &mut self,
        row: usize,
        cpu: u32,
        value: i64,
        time_ns: u64,
        visit: &mut impl FnMut(Interval),
    ) {
        let index = self.objects.index(row, cpu).filter(|index| *index < self.values.len());
        if let Some(index) = index {
            let value = if self.view.sign { value.signum() } else { value };
            self.show_index(index, value, time_ns, visit);
        }
    }

    fn show_index(
        &mut self,
        index: usize,
        value: i64,
        end_ns: u64,
        visit: &mut impl FnMut(Interval),
    ) {
        let Some(object) = self.objects.of[index] else { return };
        let (before, begin_ns) = std::mem::replace(&mut self.values[index], (value, end_ns));
        if let Some(sums) = &mut self.sums {
            sums.push(end_ns, object, value.saturating_sub(before));
        } else if before != 0 || self.of_zero {
            visit(Interval { object, value: before, begin_ns, end_ns });
        }
    }

    /// Takes a value whose end is known.
    fn add(&mut self, interval: Interval, visit: &mut impl FnMut(Interval)) {
        let Some(sums) = &mut self.sums else { return visit(interval) };
        let Interval { object, value, begin_ns, end_ns } = interval;
        if begin_ns < end_ns {
            sums.push(begin_ns, object, value);
            sums.push(end_ns, object, value.saturating_neg());
        }
    }
}

/// Sums over the threads or messages of each object.
struct Sums {
    /// Sum of each object, and since when.
    now: Vec<(i64, u64)>,
    /// Changes to come, the next one first: by time, then object.
    changes: BinaryHeap<Reverse<(u64, usize, i64)>>,
}

impl Sums {
    fn new(count: usize) -> Self {
        Self { now: vec![(0, 0); count], changes: BinaryHeap::new() }
    }

    fn push(&mut self, time_ns: u64, object: usize, change: i64) {
        if change != 0 {
            self.changes.push(Reverse((time_ns, object, change)));
        }
    }

    /// Applies the changes until a time.
    fn advance(&mut self, until_ns: u64, of_zero: bool, visit: &mut impl FnMut(Interval)) {
        while let Some(Reverse((time_ns, ..))) = self.changes.peek()
            && *time_ns < until_ns
            && let Some(Reverse((time_ns, object, change))) = self.changes.pop()
        {
            self.change(time_ns, object, change, of_zero, visit);
        }
    }

    fn change(
        &mut self,
        end_ns: u64,
        object: usize,
        change: i64,
        of_zero: bool,
        visit: &mut impl FnMut(Interval),
    ) {
        let (value, begin_ns) = self.now[object];
        if begin_ns < end_ns && (value != 0 || of_zero) {
            visit(Interval { object, value, begin_ns, end_ns });
        }
        self.now[object] = (value.saturating_add(change), end_ns.max(begin_ns));
    }

    fn finish(&mut self, end_ns: u64, of_zero: bool, visit: &mut impl FnMut(Interval)) {
        self.advance(end_ns, of_zero, visit);
        (0..self.now.len()).for_each(|object| self.change(end_ns, object, 0, of_zero, visit));
    }
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
