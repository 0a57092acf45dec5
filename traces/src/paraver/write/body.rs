//! Writer of the `.prv` file: header, comments, and the records in order of their first time. At
//! the same time states come first, then events, then messages.

use std::io::{self, Write};
use std::iter::Peekable;

use super::communications::{Communication, Communications};
use super::intervals::{Interval, Intervals};
use super::layout::Layout;
use super::line::Line;
use super::one_line::one_line;
use super::points::Points;
use super::timeline::Timeline;
use crate::paraver::EXACT_LIMIT;

/// Number of events on one line, bounded in case of a clock that stands still.
const PAIRS_PER_LINE: usize = 64;

pub(super) fn write<'a>(
    out: &mut impl Write,
    timeline: &'a Timeline<'a>,
    label_count: usize,
    started: &str,
    comments: &[String],
) -> io::Result<()> {
    let layout = timeline.layout();
    let communications = Communications::new(timeline);
    write_header(out, &layout, started)?;
    for comment in comments {
        writeln!(out, "# {}", one_line(comment))?;
    }

    let mut points = Points::new(timeline, label_count);
    let mut lines = Lines {
        out,
        line: Line::default(),
        layout: &layout,
        intervals: Intervals::new(timeline).peekable(),
        communications: communications.lines().peekable(),
    };
    let mut arrivals = communications.arrivals().peekable();
    let mut halves = communications.halves().peekable();
    let mut entries = timeline.entries().peekable();
    loop {
        let entries_ns = entries.peek().map(|entry| entry.time_ns());
        let arrival_ns = arrivals.peek().map(|arrival| arrival.time_ns);
        let half_ns = halves.peek().map(|half| half.time_ns);
        let times = [entries_ns, points.next_change_ns(), arrival_ns, half_ns];
        let Some(now) = times.into_iter().flatten().min() else { break };
        while let Some(entry) = entries.next_if(|entry| entry.time_ns() == now) {
            points.add(entry);
        }
        points.add_changes(now);
        while let Some(arrival) = arrivals.next_if(|arrival| arrival.time_ns <= now) {
            points.add_arrival(&arrival);
        }
        while let Some(half) = halves.next_if(|half| half.time_ns <= now) {
            points.add_half(&half);
        }
        if now == layout.end_ns {
            points.close_all();
        }
        lines.write_before(now)?;
        lines.write_points(now, &mut points)?;
    }
    points.close_all();
    lines.write_before(layout.end_ns)?;
    lines.write_points(layout.end_ns, &mut points)?;
    lines.write_before(u64::MAX)?;

    let notes = [
        (communications.unmatched_sends, "sends had no receive"),
        (communications.unmatched_receives, "receives had no send"),
        (communications.early_receives, "receives were recorded before their send and moved to it"),
    ];
    for (count, what) in notes.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(lines.out, "# {count} {what}")?;
    }
    Ok(())
}

fn write_header(out: &mut impl Write, layout: &Layout, started: &str) -> io::Result<()> {
    let started = one_line(started).replace(['(', ')'], "_");
    let end_ns = layout.end_ns;
    writeln!(out, "#Paraver ({started}):{end_ns:020}_ns:{}", layout.objects())
}

/// The three kinds of record, merged into `out`.
struct Lines<'a, W, M: Iterator<Item = Communication>> {
    out: &'a mut W,
    line: Line,
    layout: &'a Layout,
    intervals: Peekable<Intervals<'a>>,
    communications: Peekable<M>,
}

impl<W: Write, M: Iterator<Item = Communication>> Lines<'_, W, M> {
    /// Writes the states that begin up to `now` and the messages sent before.
    fn write_before(&mut self, now: u64) -> io::Result<()> {
        loop {
            let message = self.communications.peek().map(|message| message.logical_send_ns);
            let message = message.filter(|sent| *sent < now);
            let until = message.unwrap_or(now);
            while let Some(interval) = self.intervals.next_if(|next| next.begin_ns <= until) {
                let Interval { begin_ns, end_ns, thread, state } = interval;
                self.line.begin(1);
                self.line.location(self.layout.on_cpu(thread));
                self.line.number(begin_ns);
                self.line.number(end_ns);
                self.line.number(state.number());
                self.line.write(self.out)?;
            }
            match message.and_then(|_| self.communications.next()) {
                Some(message) => self.write_message(&message)?,
                None => return Ok(()),
            }
        }
    }

    /// Writes a message: the sender's times, then the receiver's, each logical before physical.
    fn write_message(&mut self, message: &Communication) -> io::Result<()> {
        let line = &mut self.line;
        line.begin(3);
        line.location(self.layout.on_cpu(message.sender));
        line.number(message.logical_send_ns);
        line.number(message.physical_send_ns);
        line.location(self.layout.on_cpu(message.receiver));
        line.number(message.logical_receive_ns);
        line.number(message.physical_receive_ns);
        line.number(message.bytes.min(EXACT_LIMIT));
        line.number(message.tag);
        line.write(self.out)
    }

    /// Writes the events of the moment `now`, a line for each thread, and begins the next moment.
    fn write_points(&mut self, now: u64, points: &mut Points<'_>) -> io::Result<()> {
        for (location, of_thread) in points.moment() {
            let mut rest = of_thread;
            while !rest.is_empty() {
                let mut count = rest.len().min(PAIRS_PER_LINE);
                // The half of a message, or an edge, stays on one line.
                count += rest[count..].iter().take_while(|point| point.continues()).count();
                let of_line;
                (of_line, rest) = rest.split_at(count);
                self.line.begin(2);
                self.line.location(location);
                self.line.number(now);
                for point in of_line {
                    self.line.number(point.kind.number());
                    self.line.number(point.value);
                }
                self.line.write(self.out)?;
            }
        }
        points.clear_moment();
        Ok(())
    }
}
