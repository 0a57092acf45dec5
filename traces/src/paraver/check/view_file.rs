//! Check of a `.cfg` file: a view of Paraver, which shows nothing or something else, without a
//! message, where it does not know a word.

use std::path::Path;

use super::fields::shown;
use super::lines::Lines;
use super::report::{Log, Report};
use super::rule::Rule;
use crate::error::Result;
use crate::paraver::EventKind;

/// Words that Paraver knows after each key, as far as views of our traces need them.
const LEVELS: &[&str] = &["workload", "appl", "task", "thread", "system", "node", "cpu"];
const THREAD_FUNCTIONS: &[&str] = &[
    "In State",
    "Last Evt Val",
    "Last Send Dur.",
    "Send BandWidth",
    "Send Bytes in Transit",
    "Send Messages in Transit",
    "State As Is",
    "State Record Dur.",
];
const COMPOSE_FUNCTIONS: &[&str] = &["As Is", "Sign"];
const FILTERS: &[&str] = &["All", "="];
const TAG_FILTERS: &[&str] = &["All", "<", ">"];
const ACCUMULATORS: &[&str] = &["Semantic", "Communication"];
const STATISTICS: &[&str] = &["# Bursts", "#Sends", "Average Burst Time", "Bytes sent", "Time"];

/// Checks the view at `path`.
///
/// **Errors**: those of reading the file. Every flaw of its contents is a
/// [`Finding`](super::Finding).
pub fn check_view(path: impl AsRef<Path>) -> Result<Report> {
    let path = path.as_ref();
    let mut report = Report::default();
    let mut lines = Lines::open(path, Rule::LabelCarriageReturn)?;
    let mut log = Log::new(&mut report, path);
    let mut view = View::default();
    let mut last = 1;
    while let Some((number, line)) = lines.next(&mut log)? {
        last = number;
        view.line(&String::from_utf8_lossy(line), number, &mut log);
    }
    view.finish(last, &mut log);
    Ok(report)
}

/// Counts over the lines of a view.
#[derive(Default)]
struct View {
    is_view: bool,
    announced: Option<u64>,
    windows: u64,
}

impl View {
    fn line(&mut self, line: &str, number: u64, log: &mut Log<'_>) {
        if number == 1 {
            self.is_view = line == "#ParaverCFG";
            if !self.is_view {
                let text = format_args!("the first line is `{}`", shown(line.as_bytes()));
                log.add(Rule::ViewForm, 1, text);
            }
            return;
        }
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        match key {
            "ConfigFile.NumWindows:" => self.announced = rest.parse().ok(),
            "window_id" => self.windows += 1,
            "window_level" => one_of("level", rest, LEVELS, number, log),
            "window_selected_functions" => {
                let function = |object| argument(rest, object);
                if let Some(name) = function("thread") {
                    one_of("function", name, THREAD_FUNCTIONS, number, log);
                }
                if let Some(name) = function("evt_type") {
                    one_of("filter", name, FILTERS, number, log);
                }
                if let Some(name) = function("tag_msg") {
                    one_of("filter", name, TAG_FILTERS, number, log);
                }
            }
            "window_compose_functions" => {
                if let Some(name) = argument(rest, "compose_thread") {
                    one_of("function", name, COMPOSE_FUNCTIONS, number, log);
                }
            }
            "window_semantic_module" => {
                let name = rest.strip_prefix("thread ").and_then(|rest| rest.split_once(" {"));
                let name = name.map_or("", |(name, _)| name);
                one_of("function", name, THREAD_FUNCTIONS, number, log);
            }
            "window_filter_module" => filter(rest, number, log),
            "Analyzer2D.ControlWindow:" | "Analyzer2D.DataWindow:" => {
                self.window(rest, number, log)
            }
            "Analyzer2D.Accumulator:" => one_of("accumulator", rest, ACCUMULATORS, number, log),
            "Analyzer2D.Statistic:" => one_of("statistic", rest, STATISTICS, number, log),
            _ => {}
        }
    }

    /// Checks the number of a window that a histogram uses.
    fn window(&self, text: &str, number: u64, log: &mut Log<'_>) {
        let windows = self.windows;
        if !text.parse().is_ok_and(|window| (1..=windows).contains(&window)) {
            let text = shown(text.as_bytes());
            log.add(Rule::ViewForm, number, format_args!("window `{text}`; there are {windows}"));
        }
    }

    fn finish(&self, last: u64, log: &mut Log<'_>) {
        if self.is_view && (self.windows == 0 || self.announced != Some(self.windows)) {
            let announced = self.announced.map_or("no".to_owned(), |count| count.to_string());
            let text = format_args!("{announced} windows announced, {} found", self.windows);
            log.add(Rule::ViewForm, last, text);
        }
    }
}

/// Returns the name of the function of `object` in a list as `{thread, In State}, ...`.
pub(crate) fn argument<'a>(list: &'a str, object: &str) -> Option<&'a str> {
    let mut entries = list.split('{');
    let entry = entries.find_map(|entry| entry.strip_prefix(object)?.strip_prefix(", "))?;
    entry.split('}').next()
}

/// Checks `evt_type count type type ...` and `tag_msg 1 tag`.
fn filter(rest: &str, number: u64, log: &mut Log<'_>) {
    let mut words = rest.split_ascii_whitespace();
    let what = words.next();
    let count = words.next().and_then(|count| count.parse().ok());
    let types: Vec<&str> = words.collect();
    if what == Some("tag_msg") {
        if count != Some(1) || types.len() != 1 || types[0].parse::<i64>().is_err() {
            let text = format_args!("`{rest}` is not `tag_msg`, 1 and a tag");
            log.add(Rule::ViewForm, number, text);
        }
        return;
    }
    if what != Some("evt_type") || count != Some(types.len()) {
        let text = format_args!("`{rest}` is not `evt_type`, a number and as many types");
        log.add(Rule::ViewForm, number, text);
    }
    for kind in types {
        let is_ours = EventKind::ALL.iter().any(|of| of.number().to_string() == kind);
        if !is_ours {
            log.add(Rule::UnknownType, number, format_args!("no event of ours has type {kind}"));
        }
    }
}

fn one_of(what: &str, name: &str, known: &[&str], number: u64, log: &mut Log<'_>) {
    if !known.contains(&name) {
        let (name, known) = (shown(name.as_bytes()), known.join(", "));
        log.add(Rule::UnknownWord, number, format_args!("{what} `{name}`; known are {known}"));
    }
}
