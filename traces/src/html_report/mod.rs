//! Report of a trace as a page of one file, which needs no network: its summary, and timelines that
//! zoom.
//!
//! A timeline is an SVG of cells, whose width grows as the reader zooms in; a script of some lines
//! draws the axis for each width. Without scripts the page shows all of the time.

use std::io::{self, Write};
use std::path::Path;

use crate::Summary;
use crate::error::Result;
use crate::paraver::EventKind;
use crate::render::{Timeline, View, escaped, hex, timelines};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("zoom.js");

/// Heights of rows, in pixels.
const HIGH_ROW: usize = 22;
const LOW_ROW: usize = 6;
/// Largest number of rows that are high. One of four low rows has a name.
const FEW_ROWS: usize = 64;

/// Report of a trace.
pub struct HtmlReport {
    title: String,
    summary: Summary,
    timelines: Vec<Timeline>,
}

impl HtmlReport {
    /// Reads the trace at `prv`, which gzip may have compressed: once for the summary and once for
    /// the timelines.
    ///
    /// **Errors**: as [`render()`](crate::render()) and [`Summary::of`].
    pub fn of(prv: impl AsRef<Path>, title: impl Into<String>) -> Result<Self> {
        let prv = prv.as_ref();
        let views = [View::default(), View::of_event(EventKind::TaskType.number())];
        let (summary, timelines) = (Summary::of(prv)?, timelines(prv, &views)?);
        Ok(Self { title: title.into(), summary, timelines })
    }

    /// Writes the page.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (title, summary) = (escaped(&self.title), escaped_lines(&self.summary.to_string()));
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <h1>{title}</h1>\n<pre>{summary}</pre>\n"
        )?;
        let explanation = escaped_lines(Summary::EXPLANATION);
        writeln!(
            out,
            "<details><summary>What the figures mean</summary>\n<pre>{explanation}</pre></details>"
        )?;
        self.timelines.iter().try_for_each(|timeline| write_timeline(timeline, out))?;
        write!(out, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n")
    }
}

fn write_timeline(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    let Timeline { title, names, shown, columns, values, legend, notes } = timeline;
    let rows = names.len();
    let (height, step) = if rows > FEW_ROWS { (LOW_ROW, 4) } else { (HIGH_ROW, 1) };
    write!(
        out,
        "<h2>{}</h2>\n<section class=\"timeline\" data-from=\"{}\" data-to=\"{}\" \
         data-columns=\"{columns}\">\n<p class=\"zoom\"><button>+</button> <button>&minus;</button> \
         <button>all</button> Ctrl and wheel zoom, too; a colour under the pointer has its name.</p>\n\
         <div class=\"rows\">\n<div class=\"names\">",
        escaped(title),
        shown.start,
        shown.end,
    )?;
    for name in names.iter().step_by(step) {
        write!(out, "<div style=\"height:{}px\">{}</div>", height * step, escaped(name))?;
    }
    write!(
        out,
        "</div>\n<div class=\"scroll\"><div class=\"time\">\n<svg viewBox=\"0 0 {columns} {rows}\" \
         preserveAspectRatio=\"none\" style=\"height:{}px\">\n",
        rows * height
    )?;
    for value in values {
        write!(out, "<path fill=\"{}\" d=\"", hex(value.colour))?;
        for run in &value.runs {
            write!(out, "M{} {}h{}v.9h-{}z", run.column, run.row, run.length, run.length)?;
        }
        writeln!(out, "\"><title>{}</title></path>", escaped(&value.label))?;
    }
    write!(out, "</svg>\n<div class=\"axis\"></div>\n</div></div>\n</div>\n<ul>\n")?;
    for (colour, label) in legend {
        writeln!(
            out,
            "<li><span style=\"background:{}\"></span>{}</li>",
            hex(*colour),
            escaped(label)
        )?;
    }
    writeln!(out, "</ul>")?;
    for note in notes {
        writeln!(out, "<p>{}</p>", escaped(note))?;
    }
    writeln!(out, "</section>")
}

/// Escapes text of several lines.
fn escaped_lines(text: &str) -> String {
    text.lines().map(|line| escaped(line) + "\n").collect()
}
