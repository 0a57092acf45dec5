//! Cells and messages of a picture over time, from the records of a trace.

use std::collections::BTreeMap;
use std::ops::Range;

use super::bins::{Bins, Run};
use super::levels::Levels;
use super::options::RenderOptions;
use super::palette::{self, Colour, GREY};
use super::picture::{CHARACTER, LINE, Line, Picture, Rectangle, Text};
use super::semantic::{Interval, Objects, Semantic};
use super::timeline::{ShownValue, Timeline};
use super::units::{round_step, time};
use super::view::{Level, Source, Transit, View};
use crate::counted;
use crate::paraver::{Communication, Reader, Record};

/// Pixels to the right of them, for the last time of the axis.
const MARGIN: u32 = 70;
/// Largest number of rows drawn: more are joined.
pub(super) const ROWS: usize = 1_000;
/// Largest number of rows whose sums are bars.
const BARS: usize = 16;
/// Largest number of messages drawn: more would hide the rows.
const MESSAGES: usize = 300;
/// Largest number of entries of the legend.
const ENTRIES: usize = 24;
/// Colours of a gradient that differ.
const SHADES: f64 = 32.0;

/// Cells and messages as they grow.
pub(super) struct Drawing<'a> {
    options: &'a RenderOptions,
    semantic: Semantic<'a>,
    /// Objects in each drawn row.
    joined: usize,
    rows: usize,
    columns: usize,
    cells: Cells,
    shown: Range<u64>,
    messages: Vec<(usize, u64, usize, u64)>,
    message_count: u64,
}

enum Cells {
    /// States and values with labels.
    Names(Bins),
    Numbers(Levels),
}

impl Cells {
    fn add(&mut self, joined: usize, interval: Interval) {
        let Interval { object, value, begin_ns, end_ns } = interval;
        match self {
            Self::Names(bins) => bins.add(object / joined, value, begin_ns, end_ns),
            Self::Numbers(levels) => levels.add(object / joined, value, begin_ns, end_ns),
        }
    }
}

impl<'a> Drawing<'a> {
    /// Begins a drawing with the time `shown` in as many columns.
    pub(super) fn new(
        reader: &Reader,
        options: &'a RenderOptions,
        shown: Range<u64>,
        columns: usize,
    ) -> Self {
        let objects = Objects::new(reader, options);
        let joined = objects.count.div_ceil(ROWS).max(1);
        let rows = objects.count.div_ceil(joined);
        let cells = if has_names(reader, &options.view) {
            Cells::Names(Bins::new(rows, columns, shown.clone()))
        } else {
            Cells::Numbers(Levels::new(rows, columns, shown.clone()))
        };
        Self {
            options,
            semantic: Semantic::new(&options.view, objects, false),
            joined,
            rows,
            columns,
            cells,
            shown,
            messages: Vec::new(),
            message_count: 0,
        }
    }

    pub(super) fn record(&mut self, record: Record<'_>) {
        let (cells, joined) = (&mut self.cells, self.joined);
        self.semantic.record(record, &mut |interval| cells.add(joined, interval));
        if let Record::Communication(message) = record
            && self.options.view.lines
            && self.options.view.has(&message)
            && self.semantic.objects().level != Level::Cpu
        {
            self.message(message);
        }
    }

    fn message(&mut self, message: Communication) {
        let Communication { sender, receiver, send_ns, receive_ns, .. } = message;
        let objects = self.semantic.objects();
        if let (Some(from), Some(to)) = (objects.object(sender, 0), objects.object(receiver, 0))
            && self.shown.contains(&send_ns)
            && self.shown.contains(&receive_ns)
        {
            self.message_count += 1;
            if self.messages.len() < MESSAGES {
                let (from, to) = (from / self.joined, to / self.joined);
                self.messages.push((from, send_ns, to, receive_ns));
            }
        }
    }

    /// Shows the last values, until the end of the trace.
    fn show_last(&mut self, reader: &Reader) {
        let (cells, joined) = (&mut self.cells, self.joined);
        self.semantic.finish(reader.duration_ns(), &mut |interval| cells.add(joined, interval));
    }

    pub(super) fn finish(mut self, reader: &Reader, lost: &[String]) -> Picture {
        self.show_last(reader);
        let view = &self.options.view;
        let is_bars = matches!(self.cells, Cells::Numbers(_)) && view.is_sum() && self.rows <= BARS;
        let height = if is_bars { bar_height(self.rows) } else { row_height(self.rows) };
        let names = self.names(reader);
        let longest = names.iter().map(String::len).max().unwrap_or(0) as u32;
        let (left, top) = (longest * CHARACTER + 14, LINE * 2);
        let bottom = top + self.rows as u32 * height;
        let mut picture =
            Picture { width: left + self.columns as u32 + MARGIN, ..Picture::default() };
        let title = format!("{}: {}", self.options.title, title(reader, view));
        picture.text(left, LINE, title);
        names_of_rows(&mut picture, names, left, top, height);
        let legend = if is_bars {
            self.bars(&mut picture, left, top, height)
        } else {
            let colours = Colours::new(view, &self.cells);
            for run in runs(&self.cells, &colours) {
                picture.rectangles.push(Rectangle {
                    x: left + run.column as u32,
                    y: top + run.row as u32 * height,
                    width: run.length as u32,
                    height: height - u32::from(height > 3),
                    colour: colours.of(run.value),
                });
            }
            colours.legend(reader, view, &self.cells)
        };
        self.lines(&mut picture, left, top, height);
        self.time_axis(&mut picture, left, bottom);
        let notes = self.notes(reader, legend.is_empty(), lost);
        picture.close(left, bottom + LINE * 3, legend, notes);
        picture
    }

    /// Returns the rows as runs of equal values.
    pub(super) fn timeline(mut self, reader: &Reader, lost: &[String]) -> Timeline {
        self.show_last(reader);
        let (view, shown, columns) = (&self.options.view, self.shown.clone(), self.columns);
        let colours = Colours::new(view, &self.cells);
        let mut by_value: BTreeMap<i64, Vec<Run>> = BTreeMap::new();
        for run in runs(&self.cells, &colours) {
            by_value.entry(run.value).or_default().push(run);
        }
        let values = by_value.into_iter().map(|(value, runs)| ShownValue {
            colour: colours.of(value),
            label: label(reader, view, value),
            runs,
        });
        let (values, legend) = (values.collect(), colours.legend(reader, view, &self.cells));
        let (names, notes) = (self.names(reader), self.notes(reader, false, lost));
        Timeline { title: title(reader, view), names, shown, columns, values, legend, notes }
    }

    /// Returns the names of the drawn rows: each that of the first object in it.
    fn names(&self, reader: &Reader) -> Vec<String> {
        let name = |row| self.semantic.objects().name(reader, row * self.joined);
        (0..self.rows).map(name).collect()
    }

    /// Draws sums as bars, the largest value of each column behind the mean. Returns their legend.
    fn bars(
        &self,
        picture: &mut Picture,
        left: u32,
        top: u32,
        height: u32,
    ) -> Vec<(Colour, String)> {
        let Cells::Numbers(levels) = &self.cells else { return Vec::new() };
        let Some(most) = levels.bars().map(|bar| bar.most).max() else { return Vec::new() };
        let (most, full) = (most.max(1) as f64, f64::from(height - 6));
        let colours = [palette::gradient(0.25), palette::gradient(0.75)];
        for bar in levels.bars() {
            let base = top + (bar.row as u32 + 1) * height - 2;
            for (value, colour) in [bar.most as f64, bar.mean].into_iter().zip(colours) {
                let high = (value.max(0.0) / most * full).round() as u32;
                let x = left + bar.column as u32;
                let (y, width) = (base - high, 1);
                picture.rectangles.push(Rectangle { x, y, width, height: high, colour });
            }
        }
        let right = left + self.columns as u32;
        for row in 0..self.rows as u32 {
            let base = top + (row + 1) * height - 2;
            // Inside the row, so that those of the next one are apart.
            for (y, value, text_y) in
                [(base, 0.0, base), (base - full as u32, most, base - full as u32 + 10)]
            {
                picture.lines.push(Line { from: (left, y), to: (right + 4, y), colour: GREY });
                picture.text(right + 7, text_y, number(&self.options.view, value as i64));
            }
        }
        let names = ["largest value within a column", "mean within a column"];
        colours.into_iter().zip(names.map(str::to_owned)).collect()
    }

    fn lines(&self, picture: &mut Picture, left: u32, top: u32, height: u32) {
        if self.message_count > MESSAGES as u64 {
            return;
        }
        let point = |row: usize, time: u64| {
            let part =
                (time - self.shown.start) as f64 / (self.shown.end - self.shown.start) as f64;
            let x = left + (part * self.columns as f64) as u32;
            (x, top + row as u32 * height + height / 2)
        };
        picture.lines.extend(self.messages.iter().map(|&(from, sent, to, arrived)| Line {
            from: point(from, sent),
            to: point(to, arrived),
            colour: GREY,
        }));
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
            picture.text(x.saturating_sub(10), bottom + LINE, text);
            next = time.checked_add(step);
        }
    }

    /// Returns what a reader of the picture must know beside it.
    fn notes(&self, reader: &Reader, is_empty: bool, lost: &[String]) -> Vec<String> {
        let mut notes = Vec::from_iter(simulated(reader));
        if is_empty {
            notes.push(NOTHING.to_owned());
        }
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

/// Note of a picture without values.
pub(super) const NOTHING: &str = "the trace has none of these values in this time";

/// Returns the note of a run whose times are not those of a real machine.
pub(super) fn simulated(reader: &Reader) -> Option<String> {
    reader.simulation().map(|machine| format!("simulated: {machine}"))
}

/// Returns `true` if the values are states or have labels.
pub(super) fn has_names(reader: &Reader, view: &View) -> bool {
    match view.source {
        Source::State => true,
        Source::Event(kind) => !view.is_sum() && reader.labelled_values(kind).next().is_some(),
        _ => false,
    }
}

pub(super) fn title(reader: &Reader, view: &View) -> String {
    match (&view.title, &view.source) {
        (None, Source::Event(kind)) => reader.type_label(*kind).into_owned(),
        (title, _) => title.clone().unwrap_or_default(),
    }
}

/// Returns the name of a value, or its number with a unit.
pub(super) fn label(reader: &Reader, view: &View, value: i64) -> String {
    match view.source {
        Source::State => reader.state_label(value as u32).into_owned(),
        Source::Event(kind) if has_names(reader, view) => {
            reader.value_label(kind, value).into_owned()
        }
        _ => number(view, value),
    }
}

fn number(view: &View, value: i64) -> String {
    match view.source {
        Source::InTransit(Transit::Bandwidth) if value >= 100_000 => (value / 1_000).to_string(),
        Source::InTransit(Transit::Bandwidth) => (value as f64 / 1e3).to_string(),
        _ if view.is_of_times() => time(value as f64),
        _ => value.to_string(),
    }
}

/// Writes the names of rows to the left of them, as many as fit.
pub(super) fn names_of_rows(
    picture: &mut Picture,
    names: Vec<String>,
    left: u32,
    top: u32,
    height: u32,
) {
    let step = (LINE.div_ceil(height) as usize).max(1);
    for (row, name) in names.into_iter().enumerate().step_by(step) {
        let y = top + row as u32 * height + height / 2 + 4;
        picture.texts.push(Text { x: left - 6, y, ends_at_x: true, text: name });
    }
}

/// Returns the height of a row in pixels, so that a picture of any number fits a screen or two.
pub(super) fn row_height(rows: usize) -> u32 {
    match rows {
        0..=24 => 24,
        25..=100 => 12,
        101..=300 => 5,
        _ => 2,
    }
}

/// Returns the height of a row of bars.
fn bar_height(rows: usize) -> u32 {
    match rows {
        0..=1 => 160,
        2..=4 => 80,
        _ => 40,
    }
}

fn runs(cells: &Cells, colours: &Colours) -> Vec<Run> {
    match cells {
        Cells::Names(bins) => bins.runs(),
        Cells::Numbers(levels) => levels.runs(|value| colours.of(value)),
    }
}

/// Colours of the values of a view.
enum Colours {
    States,
    Labelled,
    Numbers(Scale),
}

/// Numbers from the least to the largest, by their logarithm if they differ much.
struct Scale {
    least: i64,
    most: i64,
    is_logarithmic: bool,
}

impl Scale {
    fn part(&self, value: i64) -> f64 {
        let at = |value: i64| {
            if self.is_logarithmic { (value.max(1) as f64).ln() } else { value as f64 }
        };
        let (least, most) = (at(self.least), at(self.most));
        ((at(value) - least) / (most - least).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
    }

    /// Returns the number at a part of the scale.
    fn at(&self, part: f64) -> i64 {
        let (least, most) = (self.least as f64, self.most as f64);
        let value = if self.is_logarithmic {
            least * (most / least).powf(part)
        } else {
            least + (most - least) * part
        };
        value.round() as i64
    }
}

impl Colours {
    fn new(view: &View, cells: &Cells) -> Self {
        match cells {
            Cells::Names(_) if view.source == Source::State => Self::States,
            Cells::Names(_) => Self::Labelled,
            Cells::Numbers(levels) => {
                let (least, most) = levels.span();
                let is_logarithmic = view.is_of_times() && least > 0 && most / least >= 100;
                Self::Numbers(Scale { least, most, is_logarithmic })
            }
        }
    }

    fn of(&self, value: i64) -> Colour {
        match self {
            Self::States => palette::of_state(value),
            Self::Labelled => palette::distinct(value),
            Self::Numbers(scale) => {
                palette::gradient((scale.part(value) * SHADES).round() / SHADES)
            }
        }
    }

    /// Returns the entries of the legend, those of the longest time first.
    fn legend(&self, reader: &Reader, view: &View, cells: &Cells) -> Vec<(Colour, String)> {
        let bins = match (self, cells) {
            (Self::Numbers(scale), Cells::Numbers(levels)) => {
                if levels.bars().next().is_none() {
                    return Vec::new();
                }
                let mut values: Vec<i64> =
                    [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| scale.at(part)).to_vec();
                values.dedup();
                let entry = |value: &i64| (self.of(*value), number(view, *value));
                return values.iter().map(entry).collect();
            }
            (_, Cells::Names(bins)) => bins,
            _ => return Vec::new(),
        };
        let mut values: Vec<(i64, u64)> =
            bins.totals().iter().map(|(value, time)| (*value, *time)).collect();
        values.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let all = values.iter().map(|(_, time)| *time as f64).sum::<f64>().max(1.0);
        let entry = |&(value, time): &(i64, u64)| {
            let label = label(reader, view, value);
            (self.of(value), format!("{label} {:.1} %", time as f64 / all * 100.0))
        };
        values.iter().take(ENTRIES).map(entry).collect()
    }
}
