//! Cells and messages of a picture, from the records of a trace.

use std::collections::BTreeMap;
use std::ops::Range;

use super::bins::{Bins, Run};
use super::palette::{self, Colour, GREY};
use super::picture::{CHARACTER, LINE, Line, Picture, Rectangle, Text};
use super::timeline::{ShownValue, Timeline};
use super::{RenderOptions, Rows, View};
use crate::State;
use crate::counted;
use crate::paraver::{Communication, Reader, Record};

/// Pixels to the right of them, for the last time of the axis.
const MARGIN: u32 = 70;
/// Largest number of rows drawn: more are joined.
const ROWS: usize = 1_000;
/// Largest number of messages drawn: more would hide the rows.
const MESSAGES: usize = 300;
/// Largest number of entries of the legend.
const ENTRIES: usize = 24;

const NOT_CREATED: i64 = State::NotCreated.number() as i64;

/// Cells and messages as they grow.
pub(super) struct Drawing<'a> {
    options: &'a RenderOptions,
    /// Drawn row of each row of the trace; by cpu, from 1, if cpus are drawn.
    drawn: Vec<usize>,
    /// Rows of the trace, or ranks or cpus, in each drawn row.
    joined: usize,
    columns: usize,
    bins: Bins,
    /// Value of each row of the trace, or cpu, and since when.
    values: Vec<(i64, u64)>,
    shown: Range<u64>,
    messages: Vec<(usize, u64, usize, u64)>,
    message_count: u64,
}

impl<'a> Drawing<'a> {
    /// Begins a drawing with the time `shown` in as many columns.
    pub(super) fn new(
        reader: &Reader,
        options: &'a RenderOptions,
        shown: Range<u64>,
        columns: usize,
    ) -> Self {
        let objects: Vec<usize> = match options.rows {
            Rows::Worker => (0..reader.ranks_of_rows().len()).collect(),
            Rows::Rank => reader.ranks_of_rows().iter().map(|rank| *rank as usize).collect(),
            // Cpu 0 is none.
            Rows::Cpu => (0..=reader.cpus() as usize).map(|cpu| cpu.saturating_sub(1)).collect(),
        };
        let count = objects.iter().max().map_or(0, |last| last + 1);
        let joined = count.div_ceil(ROWS).max(1);
        let drawn: Vec<usize> = objects.iter().map(|object| object / joined).collect();
        Self {
            options,
            joined,
            columns,
            bins: Bins::new(count.div_ceil(joined), columns, shown.clone()),
            values: vec![(0, 0); drawn.len()],
            drawn,
            shown,
            messages: Vec::new(),
            message_count: 0,
        }
    }

    pub(super) fn record(&mut self, record: Record<'_>) {
        match (record, self.options.view) {
            (Record::State { row, cpu, begin_ns, end_ns, state }, View::States) => {
                if let Some(object) = self.object(row, cpu)
                    && i64::from(state) != NOT_CREATED
                {
                    self.bins.add(self.drawn[object], state.into(), begin_ns, end_ns);
                }
            }
            (Record::Event { row, cpu, time_ns, values }, View::Event(kind)) => {
                for (_, value) in values.iter().filter(|(of, _)| *of == kind) {
                    if let Some(object) = self.object(row, cpu) {
                        self.show(object, *value, time_ns);
                    }
                }
            }
            (
                Record::Communication(Communication {
                    sender, receiver, send_ns, receive_ns, ..
                }),
                _,
            ) if self.options.rows != Rows::Cpu
                && self.shown.contains(&send_ns)
                && self.shown.contains(&receive_ns) =>
            {
                self.message_count += 1;
                if self.messages.len() < MESSAGES {
                    let ends = [sender, receiver].map(|row| self.drawn[row]);
                    self.messages.push((ends[0], send_ns, ends[1], receive_ns));
                }
            }
            _ => {}
        }
    }

    /// Returns the index of a row of the trace, or of its cpu if cpus are drawn and it has one.
    fn object(&self, row: usize, cpu: u32) -> Option<usize> {
        if self.options.rows == Rows::Cpu {
            Some(cpu as usize).filter(|cpu| *cpu != 0)
        } else {
            Some(row)
        }
    }

    /// Adds the value that an object has had, and sets the next.
    fn show(&mut self, object: usize, value: i64, time_ns: u64) {
        let (before, since_ns) = std::mem::replace(&mut self.values[object], (value, time_ns));
        if before != 0 {
            self.bins.add(self.drawn[object], before, since_ns, time_ns);
        }
    }

    pub(super) fn finish(mut self, reader: &Reader, lost: &[String]) -> Picture {
        self.show_last();
        let shown = self.shown.clone();
        let runs = self.bins.runs();
        let rows = self.bins.rows();
        let height = row_height(rows);
        let names = self.names(reader);
        let longest = names.iter().map(String::len).max().unwrap_or(0) as u32;
        let (left, top) = (longest * CHARACTER + 14, LINE * 2);
        let bottom = top + rows as u32 * height;
        let mut picture =
            Picture { width: left + self.columns as u32 + MARGIN, ..Picture::default() };

        let colours = Colours::new(reader, self.options.view, &self.bins);
        for run in runs {
            picture.rectangles.push(Rectangle {
                x: left + run.column as u32,
                y: top + run.row as u32 * height,
                width: run.length as u32,
                height: height - u32::from(height > 3),
                colour: colours.of(run.value),
            });
        }
        let step = (LINE.div_ceil(height) as usize).max(1);
        for (row, name) in names.into_iter().enumerate().step_by(step) {
            let y = top + row as u32 * height + height / 2 + 4;
            picture.texts.push(Text { x: left - 6, y, ends_at_x: true, text: name });
        }
        if self.message_count <= MESSAGES as u64 {
            let point = |row: usize, time: u64| {
                let part = (time - shown.start) as f64 / (shown.end - shown.start) as f64;
                let x = left + (part * self.columns as f64) as u32;
                (x, top + row as u32 * height + height / 2)
            };
            picture.lines.extend(self.messages.iter().map(|&(from, sent, to, arrived)| Line {
                from: point(from, sent),
                to: point(to, arrived),
                colour: GREY,
            }));
        }
        let title = self.title(reader);
        picture.texts.push(Text { x: left, y: LINE, ends_at_x: false, text: title });
        self.time_axis(&mut picture, left, bottom);
        let mut y = bottom + LINE * 3;
        for (colour, text) in colours.legend(reader, self.options.view, &self.bins) {
            let swatch = Rectangle { x: left, y: y - 10, width: 12, height: 12, colour };
            picture.rectangles.push(swatch);
            picture.texts.push(Text { x: left + 20, y, ends_at_x: false, text });
            y += LINE;
        }
        for text in self.notes(lost) {
            picture.texts.push(Text { x: left, y, ends_at_x: false, text });
            y += LINE;
        }
        picture.height = y;
        picture
    }

    /// Returns the rows as runs of equal values.
    pub(super) fn timeline(mut self, reader: &Reader, lost: &[String]) -> Timeline {
        self.show_last();
        let (view, shown, columns) = (self.options.view, self.shown.clone(), self.columns);
        let colours = Colours::new(reader, view, &self.bins);
        let mut runs: BTreeMap<i64, Vec<Run>> = BTreeMap::new();
        for run in self.bins.runs() {
            runs.entry(run.value).or_default().push(run);
        }
        let values = runs.into_iter().map(|(value, runs)| ShownValue {
            colour: colours.of(value),
            label: colours.label(reader, view, value),
            runs,
        });
        let (values, legend) = (values.collect(), colours.legend(reader, view, &self.bins));
        let (names, notes) = (self.names(reader), self.notes(lost));
        Timeline { title: view_label(reader, view), names, shown, columns, values, legend, notes }
    }

    /// Shows the last value of each object until the end.
    fn show_last(&mut self) {
        (0..self.values.len()).for_each(|object| self.show(object, 0, self.shown.end));
    }

    fn names(&self, reader: &Reader) -> Vec<String> {
        (0..self.bins.rows()).map(|row| self.name(reader, row)).collect()
    }

    /// Returns the name of a drawn row: that of the first object in it.
    fn name(&self, reader: &Reader, row: usize) -> String {
        let object = row * self.joined;
        match self.options.rows {
            Rows::Worker => {
                let rank = reader.ranks_of_rows()[object];
                let first = reader.ranks_of_rows().partition_point(|of| *of < rank);
                format!("rank {rank} worker {}", object - first)
            }
            Rows::Rank => format!("rank {object}"),
            Rows::Cpu => format!("cpu {}", object + 1),
        }
    }

    fn title(&self, reader: &Reader) -> String {
        format!("{}: {}", self.options.title, view_label(reader, self.options.view))
    }

    /// Draws an axis with times at round distances.
    fn time_axis(&self, picture: &mut Picture, left: u32, bottom: u32) {
        let shown = &self.shown;
        let length = shown.end - shown.start;
        let step = round_step(length / 8);
        let unit = if step >= 1_000_000 {
            (1e6, "ms")
        } else if step >= 1_000 {
            (1e3, "us")
        } else {
            (1.0, "ns")
        };
        let mut next = shown.start.checked_next_multiple_of(step);
        while let Some(time) = next.filter(|time| *time <= shown.end) {
            let part = (time - shown.start) as f64 / length as f64;
            let x = left + (part * self.columns as f64) as u32;
            picture.lines.push(Line { from: (x, bottom), to: (x, bottom + 5), colour: GREY });
            let text = format!("{} {}", time as f64 / unit.0, unit.1);
            let y = bottom + LINE;
            picture.texts.push(Text { x: x.saturating_sub(10), y, ends_at_x: false, text });
            next = time.checked_add(step);
        }
    }

    /// Returns what a reader of the picture must know beside it.
    fn notes(&self, lost: &[String]) -> Vec<String> {
        let mut notes = Vec::new();
        if self.joined > 1 {
            notes.push(format!("each row shows {} of the trace together", self.joined));
        }
        if self.message_count > MESSAGES as u64 {
            let count = counted(self.message_count, "message");
            notes.push(format!("{count} not drawn: more than {MESSAGES} hide the rows"));
        }
        notes.extend(lost.iter().map(|lost| format!("incomplete: {lost}")));
        notes
    }
}

/// Returns the height of a row in pixels, so that a picture of any number fits a screen or two.
fn row_height(rows: usize) -> u32 {
    match rows {
        0..=24 => 24,
        25..=100 => 12,
        101..=300 => 5,
        _ => 2,
    }
}

fn view_label(reader: &Reader, view: View) -> String {
    match view {
        View::States => "states".into(),
        View::Event(kind) => reader.type_label(kind).into_owned(),
    }
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is not less than `least`.
fn round_step(least: u64) -> u64 {
    let mut step = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            if step.saturating_mul(factor) >= least {
                return step.saturating_mul(factor);
            }
        }
        step = step.saturating_mul(10);
    }
}

/// Colours of the values of a view.
enum Colours {
    States,
    Labelled,
    Numbers { least: i64, most: i64 },
}

impl Colours {
    fn new(reader: &Reader, view: View, bins: &Bins) -> Self {
        match view {
            View::States => Self::States,
            View::Event(kind) if reader.labelled_values(kind).next().is_some() => Self::Labelled,
            View::Event(_) => {
                let (first, last) =
                    (bins.totals().first_key_value(), bins.totals().last_key_value());
                let number = |entry: Option<(&i64, &u64)>| entry.map_or(0, |(value, _)| *value);
                Self::Numbers { least: number(first), most: number(last) }
            }
        }
    }

    fn of(&self, value: i64) -> Colour {
        match *self {
            Self::States => palette::of_state(value),
            Self::Labelled => palette::distinct(value),
            Self::Numbers { least, most } => palette::gradient(value, least, most),
        }
    }

    fn label(&self, reader: &Reader, view: View, value: i64) -> String {
        match (self, view) {
            (Self::Numbers { .. }, _) => value.to_string(),
            (_, View::States) => reader.state_label(value as u32).into_owned(),
            (_, View::Event(kind)) => reader.value_label(kind, value).into_owned(),
        }
    }

    /// Returns the entries of the legend, those of the longest time first.
    fn legend(&self, reader: &Reader, view: View, bins: &Bins) -> Vec<(Colour, String)> {
        if let Self::Numbers { least, most } = *self {
            let ends = if least == most { vec![least] } else { vec![least, most] };
            return ends.iter().map(|value| (self.of(*value), value.to_string())).collect();
        }
        let mut values: Vec<(i64, u64)> =
            bins.totals().iter().map(|(value, time)| (*value, *time)).collect();
        values.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let all = values.iter().map(|(_, time)| *time as f64).sum::<f64>().max(1.0);
        let entry = |&(value, time): &(i64, u64)| {
            let label = self.label(reader, view, value);
            (self.of(value), format!("{label} {:.1} %", time as f64 / all * 100.0))
        };
        values.iter().take(ENTRIES).map(entry).collect()
    }
}
