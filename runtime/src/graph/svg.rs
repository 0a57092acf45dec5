//! Drawing of a graph as SVG.

use std::fmt::Write;

use talpf_traces::counted;

use super::layout::{BESIDE, BOX_HEIGHT, DrawnBox, Layout, PADDING, lay_out};
use super::{GraphTask, Outcome, TaskGraph, Waits};

/// Width of a character of the font below. **Units**: pixels, as of all constants below.
const CHARACTER: f64 = 7.0;
const FONT: &str = "font-family=\"monospace\" font-size=\"11.5\"";
const MARGIN: f64 = 20.0;
const LINE: f64 = 20.0;
/// Width of a sample in the legend.
const SAMPLE: f64 = 28.0;
/// Length of the pointed ends of a task that communicates.
const POINT: f64 = 7.0;

/// Colours of the labels, in the order in which they occur, repeated if there are more.
const COLORS: [&str; 12] = [
    "#a6cee3", "#b2df8a", "#fdbf6f", "#cab2d6", "#fb9a99", "#ffff99", "#8dd3c7", "#d9d9d9",
    "#fccde5", "#d2b48c", "#9fc5b0", "#c6dbef",
];

pub(super) fn draw(graph: &TaskGraph) -> String {
    let mut layout = lay_out(graph);
    let legend = Legend::of(graph);
    let top = legend.height();
    layout.shift(MARGIN, top);
    let width = (layout.width + 2.0 * MARGIN).max(legend.width());
    let height = top + layout.height + MARGIN;
    let mut svg = Drawing(String::new());
    svg.line(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" {FONT}>"
    ));
    svg.line(format_args!("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"));
    svg.arrows();
    svg.legend(&legend);
    for lane in &layout.lanes {
        svg.text(lane.place.x, lane.place.y + 12.0, "bold", &lane.group);
    }
    let mut is_parent = vec![false; graph.tasks.len()];
    graph.tasks.iter().filter_map(|task| task.parent).for_each(|parent| is_parent[parent] = true);
    // Frames lie below edges and edges below boxes.
    let of = |parents: bool| (0..graph.tasks.len()).filter(move |&task| is_parent[task] == parents);
    for task in of.clone()(true) {
        svg.task(graph, &layout, &legend, task, 0.3);
    }
    svg.dependencies(graph, &layout);
    for task in of(false) {
        svg.task(graph, &layout, &legend, task, 1.0);
    }
    svg.line(format_args!("</svg>"));
    svg.0
}

/// Returns the text in the box of a task.
pub(super) fn title_of(task: &GraphTask) -> String {
    match task.steps {
        Some(1) => format!("{}, 1 step", task.label),
        Some(steps) => format!("{}, {steps} steps", task.label),
        None => task.label.to_owned(),
    }
}

/// Returns the width that `text` needs. Characters of non-European scripts may be twice as wide.
pub(super) fn text_width(text: &str) -> f64 {
    let cells = text.chars().map(|character| if character < '\u{1100}' { 1.0 } else { 2.0 });
    cells.sum::<f64>() * CHARACTER
}

/// The legend above the tasks.
struct Legend<'a> {
    title: String,
    labels: Vec<Label<'a>>,
    communicates: bool,
    waits: Vec<Waits>,
    outcomes: Vec<Outcome>,
}

/// The tasks with a label.
struct Label<'a> {
    text: &'a str,
    count: usize,
    /// `true` if all of the tasks communicate.
    communicates: bool,
}

/// The sample beside a line of the legend.
enum Sample {
    Task { color: &'static str, communicates: bool, outcome: Outcome },
    Dependency(Waits),
}

impl Sample {
    /// Creates a sample of a task without a label.
    const fn of_any(communicates: bool, outcome: Outcome) -> Self {
        Sample::Task { color: "white", communicates, outcome }
    }
}

impl<'a> Legend<'a> {
    fn of(graph: &'a TaskGraph) -> Self {
        let mut labels: Vec<Label<'_>> = Vec::new();
        for &GraphTask { label, communicates, .. } in &graph.tasks {
            match labels.iter_mut().find(|known| known.text == label) {
                Some(known) => {
                    known.count += 1;
                    known.communicates &= communicates;
                }
                None => labels.push(Label { text: label, count: 1, communicates }),
            }
        }
        let (tasks, dependencies) = (graph.tasks.len(), graph.dependencies.len());
        let dependencies = match dependencies {
            1 => "1 dependency".to_owned(),
            more => format!("{more} dependencies"),
        };
        let cut = if graph.spawned > tasks as u64 {
            format!("the first {tasks} of {}", counted(graph.spawned, "task"))
        } else {
            counted(tasks, "task")
        };
        let waits = [Waits::Body, Waits::Children, Waits::NextIteration];
        let known = |waits: &Waits| graph.dependencies.iter().any(|known| known.waits == *waits);
        let outcomes = [Outcome::Failed, Outcome::NotRun, Outcome::Cancelled];
        let occurs = |outcome: &Outcome| graph.tasks.iter().any(|task| task.outcome == *outcome);
        Legend {
            title: format!("{cut}, {dependencies}"),
            labels,
            communicates: graph.tasks.iter().any(|task| task.communicates),
            waits: waits.into_iter().filter(known).collect(),
            outcomes: outcomes.into_iter().filter(occurs).collect(),
        }
    }

    fn color(&self, label: &str) -> &'static str {
        let known = self.labels.iter().position(|known| known.text == label).unwrap_or(0);
        COLORS[known % COLORS.len()]
    }

    fn lines(&self) -> impl Iterator<Item = (Sample, String)> {
        let labels = self.labels.iter().map(|&Label { text, count, communicates }| {
            let (color, outcome) = (self.color(text), Outcome::Fine);
            (Sample::Task { color, communicates, outcome }, format!("{text} ({count})"))
        });
        let communicates = self.communicates.then(|| {
            (Sample::of_any(true, Outcome::Fine), "exchanges data with others".to_owned())
        });
        let waits =
            self.waits.iter().map(|&waits| (Sample::Dependency(waits), meaning(waits).to_owned()));
        let outcomes = self
            .outcomes
            .iter()
            .map(|&outcome| (Sample::of_any(false, outcome), what_became(outcome).to_owned()));
        labels.chain(communicates).chain(waits).chain(outcomes)
    }

    fn height(&self) -> f64 {
        MARGIN + LINE * (self.lines().count() + 2) as f64
    }

    fn width(&self) -> f64 {
        let lines = self.lines().map(|(_, line)| SAMPLE + text_width(&line));
        2.0 * MARGIN + lines.fold(text_width(&self.title), f64::max)
    }
}

fn meaning(waits: Waits) -> &'static str {
    match waits {
        Waits::Body => "waits for",
        Waits::Children => "its children wait for, it does not (weak access)",
        Waits::NextIteration => "waits for in the next iteration; every task there also for itself",
    }
}

fn style(waits: Waits) -> &'static str {
    match waits {
        Waits::Body => "stroke=\"#556\" marker-end=\"url(#body)\"",
        Waits::Children => "stroke=\"#556\" stroke-dasharray=\"4 3\" marker-end=\"url(#body)\"",
        Waits::NextIteration => "stroke=\"#27c\" marker-end=\"url(#next)\"",
    }
}

fn what_became(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Fine => "complete",
        Outcome::Failed => "failed",
        Outcome::NotRun => "did not run because of a failure",
        Outcome::Cancelled => "cancelled",
    }
}

fn border(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Fine => "stroke=\"#444\"",
        Outcome::Failed => "stroke=\"#c00\" stroke-width=\"3\"",
        Outcome::NotRun => "stroke=\"#c00\" stroke-dasharray=\"4 3\"",
        Outcome::Cancelled => "stroke=\"#777\" stroke-width=\"2\" stroke-dasharray=\"1 3\"",
    }
}

impl Layout {
    fn shift(&mut self, x: f64, y: f64) {
        for place in self.boxes.iter_mut().chain(self.lanes.iter_mut().map(|lane| &mut lane.place))
        {
            place.x += x;
            place.y += y;
        }
        for (route_x, top, bottom) in self.routes.iter_mut().flatten() {
            *route_x += x;
            *top += y;
            *bottom += y;
        }
    }
}

struct Drawing(String);

impl Drawing {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string never fails.
        let _ = writeln!(self.0, "{line}");
    }

    fn text(&mut self, x: f64, y: f64, weight: &str, text: &str) {
        let text = escaped(text);
        self.line(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-weight=\"{weight}\">{text}</text>"
        ));
    }

    /// Defines the heads of arrows.
    fn arrows(&mut self) {
        for (name, color) in [("body", "#556"), ("next", "#27c")] {
            self.line(format_args!(
                "<marker id=\"{name}\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"6\" \
                 markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L6 3L0 6z\" fill=\"{color}\"/></marker>"
            ));
        }
    }

    fn legend(&mut self, legend: &Legend<'_>) {
        let mut y = MARGIN;
        self.text(MARGIN, y, "bold", &legend.title);
        for (sample, line) in legend.lines() {
            y += LINE;
            match sample {
                Sample::Dependency(waits) => self.line(format_args!(
                    "<path d=\"M{MARGIN} {:.1}h20\" fill=\"none\" {}/>",
                    y - 4.0,
                    style(waits)
                )),
                Sample::Task { color, communicates, outcome } => {
                    let place = DrawnBox { x: MARGIN, y: y - 11.0, width: 20.0, height: 14.0 };
                    let (outline, border) = (outline(place, communicates), border(outcome));
                    self.line(format_args!("{outline} fill=\"{color}\" {border}/>"));
                }
            }
            self.text(MARGIN + SAMPLE, y, "normal", &line);
        }
    }

    fn dependencies(&mut self, graph: &TaskGraph, layout: &Layout) {
        for (dependency, route) in graph.dependencies.iter().zip(&layout.routes) {
            let (from, to) = (layout.boxes[dependency.from], layout.boxes[dependency.to]);
            let path = match dependency.waits {
                Waits::NextIteration => beside(from, to),
                _ => through(from, route, to),
            };
            let style = style(dependency.waits);
            self.line(format_args!("<path d=\"{path}\" fill=\"none\" {style}/>"));
        }
    }

    fn task(
        &mut self,
        graph: &TaskGraph,
        layout: &Layout,
        legend: &Legend<'_>,
        number: usize,
        opacity: f64,
    ) {
        let (task, place) = (&graph.tasks[number], layout.boxes[number]);
        let mut tip = format!("{} of {}, task {}", task.label, task.group, number + 1);
        if task.outcome != Outcome::Fine {
            let _ = write!(tip, ", {}", what_became(task.outcome));
        }
        for used in &task.uses {
            let weak = if used.is_weak { "weak " } else { "" };
            let _ = write!(tip, "\n{weak}{} {}", used.mode, used.array.part(used.rect));
        }
        let (tip, color, border) = (escaped(&tip), legend.color(task.label), border(task.outcome));
        let outline = outline(place, task.communicates);
        self.line(format_args!(
            "<g><title>{tip}</title>{outline} fill=\"{color}\" fill-opacity=\"{opacity}\" {border}/>"
        ));
        self.text(place.x + PADDING, place.y + BOX_HEIGHT - 7.0, "normal", &title_of(task));
        self.line(format_args!("</g>"));
    }
}

/// Returns the beginning of an element in the shape of a task: a box, or one with pointed ends.
fn outline(place: DrawnBox, communicates: bool) -> String {
    let DrawnBox { x, y, width, height } = place;
    if !communicates {
        return format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"4\""
        );
    }
    let [left, right] = [x, x + width];
    let [top, middle, bottom] = [y, y + height / 2.0, y + height];
    let (from, to) = (left + POINT, right - POINT);
    format!(
        "<polygon points=\"{left:.1},{middle:.1} {from:.1},{top:.1} {to:.1},{top:.1} \
         {right:.1},{middle:.1} {to:.1},{bottom:.1} {from:.1},{bottom:.1}\""
    )
}

/// Returns the path down from one task to another: straight through the rows that it passes.
fn through(from: DrawnBox, route: &[(f64, f64, f64)], to: DrawnBox) -> String {
    let mut x = from.x + from.width / 2.0;
    let mut y = from.y + from.height;
    let mut path = format!("M{x:.1} {y:.1}");
    let mut bend = |x: &mut f64, y: &mut f64, to_x: f64, to_y: f64| {
        let middle = (*y + to_y) / 2.0;
        let _ = write!(path, "C{x:.1} {middle:.1} {to_x:.1} {middle:.1} {to_x:.1} {to_y:.1}");
        (*x, *y) = (to_x, to_y);
    };
    for (nth, &(pass, top, bottom)) in route.iter().enumerate() {
        if nth > 0 {
            bend(&mut x, &mut y, pass, top);
        }
        // Passes beside higher boxes of the row.
        bend(&mut x, &mut y, pass, bottom);
    }
    bend(&mut x, &mut y, to.x + to.width / 2.0, to.y);
    path
}

/// Returns the path up from one task to an earlier one, or to one beside it.
fn beside(from: DrawnBox, to: DrawnBox) -> String {
    let (x, y) = (from.x + from.width, from.y + from.height / 2.0);
    let (to_x, to_y) = (to.x + to.width, to.y + to.height / 2.0);
    let out = x.max(to_x) + BESIDE;
    format!("M{x:.1} {y:.1}C{out:.1} {y:.1} {out:.1} {to_y:.1} {to_x:.1} {to_y:.1}")
}

/// Escapes `text` for XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\n' | '\t' => escaped.push(character),
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}
