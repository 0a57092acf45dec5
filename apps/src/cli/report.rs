//! Report of a run: its printed lines and its JSON.

use std::io::{self, Write};

use ibverbs_sim::bootstrap::Connections;
use serde_json::{Value, json};
use talpf::{Progress, TicketCounts};
use talpf_apps::run::{
    App, Dilation, Machine, Measure, Outcome, OvershootSums, Problem, SimulatedLink, Simulation,
    Solution, Variant, Work,
};
use talpf_runtime::Metrics;
use talpf_traces::counted;

use super::breakdown::Breakdown;

/// Describes a run in comments of its trace.
pub(super) fn comments<A: App>(
    variant: Variant,
    problem: &A::Problem,
    machine: &Machine,
) -> Vec<String> {
    let parameters =
        problem.parameters().into_iter().map(|(name, value)| format!("{name} {value}"));
    let replayed = if machine.replays() { ", replayed" } else { "" };
    let ranks = counted(machine.ranks(), "rank");
    vec![
        format!("{} {}{replayed}", A::NAME, variant.name()),
        match machine.simulation() {
            Some(simulation) => format!("{ranks}, simulated: {}", simulation),
            None => {
                let workers = match machine.workers_per_rank() {
                    Some(each) => format!("{} each", counted(each, "worker")),
                    None => counted(machine.workers(), "worker"),
                };
                let link = machine.link().map(|link| format!(", simulated: link {}", link.text));
                let dilated = machine.dilation().map(|dilation| format!(", {dilation}"));
                let others = [link, dilated].map(Option::unwrap_or_default).concat();
                format!("{ranks}, {workers}{others}")
            }
        },
        parameters.collect::<Vec<_>>().join(", "),
    ]
}

/// Name and value of a line.
pub(super) type Line = (&'static str, String);

/// Formats lines as text with aligned values.
pub(super) fn text(lines: &[Line]) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.iter().map(|(name, value)| format!("{name:<width$} {value}\n")).collect()
}

/// Result of a run, in the order of its lines.
#[derive(Debug)]
pub(super) struct Report {
    app: &'static str,
    variant: &'static str,
    ranks: usize,
    workers: usize,
    workers_per_rank: Option<usize>,
    /// Connections between the processes of the ranks, if those are connected by us.
    connections: Option<Connections>,
    /// `true` if a thread serves other processes.
    has_progress_thread: bool,
    replay: bool,
    link: Option<SimulatedLink>,
    simulation: Option<Simulation>,
    /// Virtual cores in dilated time, and how late they were given back.
    dilation: Option<(Dilation, OvershootSums)>,
    parameters: Vec<(&'static str, usize)>,
    /// Number of steps that were computed, if the result has decided it.
    steps: Option<usize>,
    seconds: f64,
    work: Work,
    /// Sum of the result; `None` without one.
    checksum: Option<f64>,
    measures: Vec<Measure>,
    /// `true` if the result equals the serial one; `None` if it was not checked.
    verified: Option<bool>,
    /// Metrics of the runtime, if the variant has tasks, with the tickets of ranks in several processes.
    metrics: Option<(Metrics, Option<TicketCounts>)>,
}

impl Report {
    pub(super) fn new<A: App>(
        variant: Variant,
        problem: &A::Problem,
        solution: &Solution<A::Outcome>,
        verified: Option<bool>,
        metrics: Option<(Metrics, Option<TicketCounts>)>,
        overshoot: OvershootSums,
    ) -> Self {
        let has_result = solution.machine.executes();
        Self {
            app: A::NAME,
            variant: variant.name(),
            ranks: solution.machine.ranks(),
            workers: solution.machine.workers(),
            workers_per_rank: solution.machine.workers_per_rank(),
            connections: solution.machine.transport().connections(),
            has_progress_thread: solution.machine.progress() == Progress::Thread,
            replay: solution.machine.replays(),
            link: solution.machine.link().filter(|_| variant.has_ranks()),
            simulation: solution.machine.simulation(),
            dilation: solution.machine.dilation().map(|dilation| (dilation, overshoot)),
            parameters: problem.parameters(),
            steps: solution.result.steps(),
            // A run of one cell can end within one tick of the clock.
            seconds: solution.seconds.max(1e-9),
            work: solution.work(problem),
            checksum: has_result.then(|| solution.result.checksum()),
            measures: if has_result { A::measures(problem, solution) } else { Vec::new() },
            verified,
            metrics,
        }
    }

    /// Returns the rate in millions of units of work per second.
    fn rate(&self) -> f64 {
        self.work.amount / self.seconds / 1e6
    }

    /// Returns one line per value; `hash` is shown beside the checksum.
    pub(super) fn lines(&self, hash: u64) -> Vec<Line> {
        let verified = match self.verified {
            None if self.checksum.is_none() => "not executed",
            None => "not checked (see --check)",
            Some(true) => "yes, every bit equals serial",
            Some(false) => "NO",
        };
        let mut lines = vec![
            ("variant", self.variant.to_owned()),
            ("ranks", self.ranks.to_string()),
            match self.simulation {
                Some(simulation) => ("simulated", simulation.to_string()),
                None => ("workers", self.workers_text()),
            },
        ];
        lines.extend(self.dilation.map(|(dilation, _)| ("cores", dilation.to_string())));
        lines.extend(self.connections.map(|between| ("transport", between.to_string())));
        lines.extend(self.has_progress_thread.then(|| ("progress", "a thread".to_owned())));
        let without_ofi = self.connections.and_then(|between| between.without_ofi);
        lines.extend(without_ofi.map(|process| ("libfabric", format!("not used: {process}"))));
        let factor = self.dilation.map(|(dilation, _)| format!(", dilated {}", dilation.factor));
        let factor = factor.unwrap_or_default();
        lines.extend(self.link.map(|link| ("link", format!("{} (simulated{factor})", link.text))));
        lines.push(("replay", if self.replay { "yes" } else { "no" }.to_owned()));
        lines.extend(self.parameters.iter().map(|(name, value)| (*name, value.to_string())));
        lines.extend(self.steps.map(|steps| ("steps_run", steps.to_string())));
        let simulated = if self.simulation.is_some() { " (simulated)" } else { "" };
        let dilated = self.dilation.map(|(dilation, _)| format!(" (dilated {})", dilation.factor));
        let dilated = dilated.unwrap_or_default();
        lines.extend([
            ("time", format!("{:.6} s{simulated}{dilated}", self.seconds)),
            ("rate", format!("{:.1} {}{dilated}", self.rate(), self.work.unit)),
        ]);
        lines.extend(self.dilation.map(|(_, overshoot)| ("overshoot", overshoot.to_string())));
        lines.push(match self.checksum {
            Some(checksum) => ("checksum", format!("{checksum} (bits {hash:016x})")),
            None => ("checksum", "none, as no body was executed".to_owned()),
        });
        lines.extend(self.breakdown().map(|breakdown| ("breakdown", breakdown.to_string())));
        let measure = |m: &Measure| (m.name, format!("{:.6e} {}", m.value, m.meaning));
        lines.extend(self.measures.iter().map(measure));
        lines.push(("verified", verified.to_owned()));
        lines
    }

    fn workers_text(&self) -> String {
        let each = self.workers_per_rank.map(|each| format!(", {each} of each rank alone"));
        format!("{}{}", self.workers, each.unwrap_or_default())
    }

    /// Returns where the time of virtual cores has gone, if the run has taken virtual time.
    fn breakdown(&self) -> Option<Breakdown> {
        let (simulation, (metrics, _)) = self.simulation.zip(self.metrics.as_ref())?;
        let cores = self.ranks as u64 * u64::from(simulation.cores);
        metrics.core_times.map(|times| Breakdown::new(cores, metrics.elapsed, times))
    }

    /// Writes all values as one JSON object, in order.
    pub(super) fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        let mut fields: Vec<(&str, Value)> = vec![
            ("app", self.app.into()),
            ("variant", self.variant.into()),
            ("ranks", self.ranks.into()),
            match self.simulation {
                Some(Simulation { profile, cores, executes }) => {
                    let name = profile.name();
                    let machine =
                        json!({ "profile": name, "cores_per_rank": cores, "executed": executes });
                    ("simulated", machine)
                }
                None => ("workers", self.workers.into()),
            },
        ];
        fields.extend(self.workers_per_rank.map(|each| ("workers_per_rank", each.into())));
        fields.extend(self.dilation.map(|(Dilation { cores, factor }, overshoot)| {
            (
                "dilated",
                json!({ "factor": factor, "cores_per_rank": cores, "overshoot": overshoot }),
            )
        }));
        fields.extend(self.connections.map(|between| ("transport", between.to_string().into())));
        fields.extend(self.has_progress_thread.then(|| ("progress", "thread".into())));
        fields.extend(self.link.map(|link| ("simulated_link", link.text.into())));
        fields.push(("replay", self.replay.into()));
        fields.extend(self.parameters.iter().map(|(name, value)| (*name, (*value).into())));
        fields.extend(self.steps.map(|steps| ("steps_run", steps.into())));
        fields.extend([
            ("seconds", self.seconds.into()),
            (self.work.field, self.rate().into()),
            ("checksum", self.checksum.into()),
        ]);
        fields.extend(self.measures.iter().map(|measure| (measure.name, measure.value.into())));
        fields.extend(self.breakdown().map(|breakdown| ("breakdown", breakdown.json())));
        fields.push(("verified", self.verified.into()));
        let json = |(metrics, tickets): &(_, _)| super::metrics::json(metrics, *tickets);
        fields.push(("metrics", self.metrics.as_ref().map(json).into()));
        let lines: Vec<_> =
            fields.iter().map(|(name, value)| format!("  \"{name}\": {value}")).collect();
        writeln!(out, "{{\n{}\n}}", lines.join(",\n"))
    }
}
