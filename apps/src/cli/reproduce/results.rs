//! Results of the figures, as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};
use talpf_apps::run::{Simulation, Variant};

use super::figures::{Figure, Size};
use super::points::Point;
use super::statements::Verdict;

/// Results of all figures.
pub(super) struct Results {
    pub(super) machine: Simulation,
    pub(super) size: Size,
    pub(super) figures: Vec<FigureResults>,
}

/// Results of a figure.
pub(super) struct FigureResults {
    pub(super) figure: &'static Figure,
    /// Parameters of the problem on one rank, and on the most.
    pub(super) parameters: [String; 2],
    pub(super) points: Vec<Point>,
    pub(super) verdicts: Vec<Verdict>,
}

impl FigureResults {
    pub(super) fn new(figure: &'static Figure, size: Size, points: Vec<Point>) -> Self {
        let ranks = size.ranks();
        let of = |ranks: usize| match figure.problem(size, ranks) {
            Ok(problem) => {
                let parameters = problem.parameters().into_iter();
                let parameters = parameters.map(|(name, value)| format!("{name} {value}"));
                parameters.collect::<Vec<_>>().join(", ")
            }
            Err(error) => error.to_string(),
        };
        let parameters = [1, *ranks.last().unwrap_or(&1)].map(of);
        let mut results = FigureResults { figure, parameters, points, verdicts: Vec::new() };
        results.verdicts = figure.statements.iter().map(|said| said.judge(&results)).collect();
        results
    }

    /// Returns the numbers of ranks.
    pub(super) fn ranks(&self) -> Vec<usize> {
        let mut ranks: Vec<usize> = self.points.iter().map(|point| point.ranks).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// Returns the rate relative to that of the first version on one rank.
    pub(super) fn speedup(&self, point: &Point) -> f64 {
        let base = self
            .points
            .iter()
            .find(|base| base.ranks == 1 && Some(&base.variant) == self.figure.versions.first());
        base.map_or(0.0, |base| point.rate / base.rate)
    }

    /// Returns the speed-up for each rank, 0 without such a point.
    pub(super) fn normalised(&self, variant: Variant, ranks: usize) -> f64 {
        let mut points = self.points.iter();
        let found = points.find(|point| point.variant == variant && point.ranks == ranks);
        found.map_or(0.0, |point| self.speedup(point) / ranks as f64)
    }

    pub(super) fn title(&self) -> String {
        let Figure { number, app, scaling, .. } = self.figure;
        format!("Figure {number}: {}, {}", app.title(), scaling.name())
    }

    fn json(&self) -> Value {
        let point = |point: &Point| {
            json!({
                "variant": point.variant.name(),
                "ranks": point.ranks,
                "seconds": point.seconds,
                "rate": point.rate,
                "speedup": self.speedup(point),
                "normalised": self.speedup(point) / point.ranks as f64,
            })
        };
        json!({
            "figure": self.figure.number,
            "problem_of_one_rank": self.parameters[0],
            "problem_of_most_ranks": self.parameters[1],
            "points": self.points.iter().map(point).collect::<Vec<_>>(),
            "statements": self.verdicts.iter().map(Verdict::json).collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let mut text = format!("{}: normalised throughput\n", self.title());
        let ranks = self.ranks();
        let heads = ranks.iter().map(|ranks| format!("{ranks:>7}")).collect::<String>();
        let _ = writeln!(text, "  {:<22}{heads}", "ranks");
        for variant in self.figure.variants() {
            let value = |ranks: &usize| format!("{:>7.3}", self.normalised(variant, *ranks));
            let values = ranks.iter().map(value).collect::<String>();
            let _ = writeln!(text, "  {:<22}{values}", variant.name());
        }
        for verdict in &self.verdicts {
            let Verdict { statement, found, .. } = verdict;
            let _ = writeln!(text, "  [{}] {}\n    {found}", verdict.outcome(), statement.says);
        }
        text + "\n"
    }
}

impl Results {
    /// Returns what is simulated, and on what.
    pub(super) fn what(&self) -> String {
        let quick = match self.size {
            Size::Full => "",
            Size::Quick => {
                " Problems and ranks are reduced (--quick): what the text says of 32 ranks is judged by 8."
            }
        };
        format!("Simulated: {}.{quick}", self.machine)
    }

    pub(super) fn text(&self) -> String {
        let figures = self.figures.iter().map(FigureResults::text).collect::<String>();
        format!("{}\n\n{figures}", self.what())
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "simulated": self.machine.to_string(),
            "quick": self.size == Size::Quick,
            "figures": self.figures.iter().map(FigureResults::json).collect::<Vec<_>>(),
        })
    }
}
