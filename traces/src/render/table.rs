//! Histograms of a view, and matrices of messages.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::drawing::{NOTHING, ROWS, label, names_of_rows, row_height, simulated, title};
use super::options::RenderOptions;
use super::palette;
use super::picture::{CHARACTER, LINE, Picture, Rectangle};
use super::semantic::{Interval, Objects, Semantic};
use super::units::time;
use super::view::Statistic;
use crate::paraver::{Communication, Reader, Record};

/// Largest number of rows and columns whose cells have numbers.
const ROWS_WITH_NUMBERS: usize = 64;
const COLUMNS_WITH_NUMBERS: usize = 24;
/// Width that columns without numbers share, and height of the bars of their sums.
const WIDTH: u32 = 1_000;
const BARS: u32 = 160;
/// Columns of times to each power of two.
const PER_OCTAVE: f64 = 4.0;

/// Sums of a table as they grow: memory is that of its cells.
pub(super) struct Table<'a> {
    options: &'a RenderOptions,
    statistic: Statistic,
    semantic: Semantic<'a>,
    joined: usize,
    shown: Range<u64>,
    /// Columns are ranges of times rather than single values.
    has_ranges: bool,
    /// Cells by row and column.
    cells: BTreeMap<(usize, i64), Sum>,
}

/// Sum over the times with a value, or over messages.
#[derive(Clone, Copy, Default)]
struct Sum {
    time: u64,
    count: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.time = self.time.saturating_add(other.time);
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    fn number(&self, statistic: Statistic) -> f64 {
        match statistic {
            Statistic::Time { .. } => self.time as f64,
            Statistic::AverageBurst => self.time as f64 / self.count.max(1) as f64,
            Statistic::Bursts | Statistic::Messages => self.count as f64,
            Statistic::Bytes => self.bytes as f64,
        }
    }

    fn text(&self, statistic: Statistic) -> String {
        match statistic {
            Statistic::Time { .. } | Statistic::AverageBurst => time(self.number(statistic)),
            _ => format!("{}", self.number(statistic)),
        }
    }
}

impl<'a> Table<'a> {
    pub(super) fn new(
        reader: &Reader,
        options: &'a RenderOptions,
        statistic: Statistic,
        shown: Range<u64>,
    ) -> Self {
        let is_matrix = is_matrix(statistic);
        // Messages go from rank to rank, whichever rows are asked for.
        let of_ranks = RenderOptions { rows: None, ..options.clone() };
        let objects = Objects::new(reader, if is_matrix { &of_ranks } else { options });
        let of_zero = statistic == Statistic::Time { of_zero: true };
        Self {
            statistic,
            joined: objects.count.div_ceil(ROWS).max(1),
            semantic: Semantic::new(&options.view, objects, of_zero),
            options,
            shown,
            has_ranges: options.view.is_of_times(),
            cells: BTreeMap::new(),
        }
    }

    pub(super) fn record(&mut self, record: Record<'_>) {
        if !is_matrix(self.statistic) {
            let Self { semantic, cells, joined, shown, has_ranges, .. } = self;
            semantic.record(record, &mut |interval| {
                add(cells, *joined, *has_ranges, shown, interval);
            });
        } else if let Record::Communication(message) = record
            && self.shown.contains(&message.logical_send_ns)
            && self.options.view.has(&message)
        {
            let Communication { sender, receiver, bytes, .. } = message;
            let objects = self.semantic.objects();
            if let (Some(from), Some(to)) = (objects.object(sender, 0), objects.object(receiver, 0))
            {
                let key = (from / self.joined, (to / self.joined) as i64);
                self.cells.entry(key).or_default().add(Sum { time: 0, count: 1, bytes });
            }
        }
    }

    pub(super) fn finish(mut self, reader: &Reader, lost: &[String]) -> Picture {
        if !is_matrix(self.statistic) {
            let Self { semantic, cells, joined, shown, has_ranges, .. } = &mut self;
            semantic.finish(reader.duration_ns(), &mut |interval| {
                add(cells, *joined, *has_ranges, shown, interval);
            });
        }
        let columns = self.columns();
        let mut names: Vec<String> = (0..self.rows()).map(|row| self.name(reader, row)).collect();
        let totals = self.totals();
        let has_numbers = names.len() <= ROWS_WITH_NUMBERS
            && columns.len() <= COLUMNS_WITH_NUMBERS
            && !self.has_ranges;
        if has_numbers && names.len() > 1 {
            names.push("all".to_owned());
        }
        let longest = names.iter().map(String::len).max().unwrap_or(0) as u32;
        let left = longest * CHARACTER + 14;
        let mut picture = Picture::default();
        let title = format!("{}: {}", self.options.title, title(reader, &self.options.view));
        picture.text(left, LINE, title.clone());
        let bottom = if has_numbers {
            self.numbers(reader, &mut picture, names, &columns, &totals, left)
        } else {
            self.shades(reader, &mut picture, names, &columns, &totals, left)
        };
        let notes = self.notes(reader, lost);
        let longest = notes.iter().chain([&title]).map(String::len).max().unwrap_or(0) as u32;
        picture.width = picture.width.max(left + longest * CHARACTER) + 20;
        picture.close(left, bottom + LINE, Vec::new(), notes);
        picture
    }

    fn rows(&self) -> usize {
        self.semantic.objects().count.div_ceil(self.joined)
    }

    fn name(&self, reader: &Reader, row: usize) -> String {
        self.semantic.objects().name(reader, row * self.joined)
    }

    /// Returns the columns: those with names or few numbers as they occur, numbers of a range all.
    fn columns(&self) -> Vec<i64> {
        if is_matrix(self.statistic) {
            return (0..self.rows() as i64).collect();
        }
        let occurring: BTreeSet<i64> = self.cells.keys().map(|(_, column)| *column).collect();
        match (occurring.first(), occurring.last()) {
            (Some(&first), Some(&last)) if self.has_ranges => (first..=last).collect(),
            _ => occurring.into_iter().collect(),
        }
    }

    /// Returns the sum of each column over all rows.
    fn totals(&self) -> BTreeMap<i64, Sum> {
        let mut totals: BTreeMap<i64, Sum> = BTreeMap::new();
        for ((_, column), sum) in &self.cells {
            totals.entry(*column).or_default().add(*sum);
        }
        totals
    }

    fn column_name(&self, reader: &Reader, column: i64) -> String {
        if is_matrix(self.statistic) {
            format!("to {}", self.semantic.objects().number(column as usize * self.joined))
        } else if self.has_ranges {
            time(2_f64.powf(column as f64 / PER_OCTAVE))
        } else {
            label(reader, &self.options.view, column)
        }
    }

    /// Draws a number in each cell, on a shade of it. Returns the lower edge.
    fn numbers(
        &self,
        reader: &Reader,
        picture: &mut Picture,
        names: Vec<String>,
        columns: &[i64],
        totals: &BTreeMap<i64, Sum>,
        left: u32,
    ) -> u32 {
        let (top, height) = (LINE * 3, 24);
        let most = self.most();
        let rows = names.len();
        names_of_rows(picture, names, left, top, height);
        let mut x = left;
        for column in columns {
            let sum = |row: usize| match self.cells.get(&(row, *column)) {
                None if row == self.rows() => totals.get(column).copied(),
                sum => sum.copied(),
            };
            let sums: Vec<Option<Sum>> = (0..rows).map(sum).collect();
            let text = |sum: &Option<Sum>| sum.map(|sum| sum.text(self.statistic));
            let texts: Vec<Option<String>> = sums.iter().map(text).collect();
            let name = self.column_name(reader, *column);
            let longest = texts.iter().flatten().map(String::len).max().unwrap_or(0);
            let width = (longest.max(name.chars().count()) as u32 + 2) * CHARACTER;
            picture.text(x + CHARACTER, top - 6, name);
            for (row, (sum, text)) in sums.iter().zip(texts).enumerate() {
                let (Some(sum), Some(text)) = (sum, text) else { continue };
                let y = top + row as u32 * height;
                if row < self.rows() {
                    // Half of the gradient leaves black text legible.
                    let colour = palette::gradient(sum.number(self.statistic) / most / 2.0);
                    let (width, height) = (width - 1, height - 1);
                    picture.rectangles.push(Rectangle { x, y, width, height, colour });
                }
                picture.text(x + CHARACTER, y + 16, text);
            }
            x += width;
        }
        picture.width = x;
        top + rows as u32 * height + LINE
    }

    /// Draws a shade for each cell, below bars of the sums of the columns. Returns the lower edge.
    fn shades(
        &self,
        reader: &Reader,
        picture: &mut Picture,
        names: Vec<String>,
        columns: &[i64],
        totals: &BTreeMap<i64, Sum>,
        left: u32,
    ) -> u32 {
        let width = (WIDTH / columns.len().max(1) as u32).clamp(2, 60);
        let number = |sum: &Sum| sum.number(self.statistic);
        let most_total = totals.values().map(number).fold(1.0, f64::max);
        let most = self.most();
        let (top, height) = (LINE * 2, row_height(names.len()));
        let axis = top + BARS;
        let below = axis + LINE * 2;
        let at: BTreeMap<i64, u32> = columns
            .iter()
            .zip(0..)
            .map(|(column, index)| (*column, left + index * width))
            .collect();
        let gap = u32::from(width > 3);
        for (column, sum) in totals {
            let high = (number(sum) / most_total * f64::from(BARS - LINE)).ceil() as u32;
            let (x, y, colour) = (at[column], axis - high, palette::gradient(0.75));
            picture.rectangles.push(Rectangle { x, y, width: width - gap, height: high, colour });
        }
        let longest = columns.iter().map(|column| self.column_name(reader, *column).len()).max();
        let step = (longest.unwrap_or(0) as u32 + 2) * CHARACTER / width + 1;
        for column in columns.iter().step_by(step as usize) {
            picture.text(at[column], axis + LINE - 3, self.column_name(reader, *column));
        }
        let end = left + columns.len() as u32 * width;
        let largest = totals.values().max_by(|a, b| number(a).total_cmp(&number(b)));
        let largest = largest.map_or_else(String::new, |sum| sum.text(self.statistic));
        picture.width = end + largest.len() as u32 * CHARACTER + 14;
        picture.text(end + 7, top + LINE + 4, largest);
        if names.len() <= 1 {
            return axis + LINE * 2;
        }
        for ((row, column), sum) in &self.cells {
            picture.rectangles.push(Rectangle {
                x: at[column],
                y: below + *row as u32 * height,
                width: width - gap,
                height: height - u32::from(height > 3),
                colour: palette::gradient(number(sum) / most),
            });
        }
        let rows = names.len() as u32;
        names_of_rows(picture, names, left, below, height);
        below + rows * height + LINE
    }

    /// Returns the largest number of a cell.
    fn most(&self) -> f64 {
        self.cells.values().map(|sum| sum.number(self.statistic)).fold(1.0, f64::max)
    }

    fn notes(&self, reader: &Reader, lost: &[String]) -> Vec<String> {
        let mut notes = Vec::from_iter(simulated(reader));
        if self.cells.is_empty() {
            notes.push(NOTHING.to_owned());
        }
        if self.joined > 1 {
            notes.push(format!("each row shows {} of the trace together", self.joined));
        }
        if self.has_ranges {
            notes.push("each column is a range that begins with the time below it".to_owned());
        }
        notes.extend(lost.iter().map(|lost| format!("incomplete: {lost}")));
        notes
    }
}

fn is_matrix(statistic: Statistic) -> bool {
    matches!(statistic, Statistic::Messages | Statistic::Bytes)
}

/// Adds the part of a time that is shown.
fn add(
    cells: &mut BTreeMap<(usize, i64), Sum>,
    joined: usize,
    has_ranges: bool,
    shown: &Range<u64>,
    interval: Interval,
) {
    let Interval { object, value, begin_ns, end_ns } = interval;
    let (begin, end) = (begin_ns.max(shown.start), end_ns.min(shown.end));
    if begin > end || (begin == end && begin_ns < end_ns) {
        return;
    }
    let column =
        if has_ranges { ((value.max(1) as f64).log2() * PER_OCTAVE) as i64 } else { value };
    let sum = Sum { time: end - begin, count: 1, bytes: 0 };
    cells.entry((object / joined, column)).or_default().add(sum);
}
