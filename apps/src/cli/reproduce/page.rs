//! Page of all figures: one file without scripts or external resources.

use talpf_apps::run::Variant;

use super::super::compare::page::{STYLE, escape};
use super::super::compare::plot::{mark, plot};
use super::super::compare::results::Spread;
use super::super::compare::series::{Series, Value};
use super::figures::Figure;
use super::points::Point;
use super::results::{FigureResults, Results};
use super::statements::Verdict;

/// Assumptions of the whole report.
const ASSUMPTIONS: &str = "Times are made up by the profile: of the machine of the thesis it has what \
    section 7.1 says, and assumptions, which its file marks, for the rest: the network, and what the \
    runtime and a unit of work take. The sizes of the problems are not in the text: they follow from what \
    it says of tasks. The base is TALPF(D) on one rank. Bodies are not executed; tasks, puts and syncs \
    are those of the program.";

const MORE_STYLE: &str = ".agrees { color: #15803d; } .differs { color: #b91c1c; }
td.text { white-space: normal; text-align: left; min-width: 16em; vertical-align: top; }
th.text { text-align: left; }
";

/// Formats the whole page.
pub(super) fn page(results: &Results) -> String {
    let title = "Chapter 7 in virtual time";
    let figures = results.figures.iter().map(figure).collect::<String>();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{MORE_STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p class=\"what\">{}</p>\n<section class=\"findings\">\n<p>{ASSUMPTIONS}</p>\n\
         <p>{}</p>\n</section>\n{figures}</main>\n</body>\n</html>\n",
        escape(&results.what()),
        escape(&summary(results)),
    )
}

/// Counts the statements by their outcome.
fn summary(results: &Results) -> String {
    let verdicts = || results.figures.iter().flat_map(|figure| &figure.verdicts);
    let agree = verdicts().filter(|verdict| verdict.agrees).count();
    let all = verdicts().count();
    format!("Of {all} statements of the text {agree} agree with what came out.")
}

fn figure(results: &FigureResults) -> String {
    let ranks = results.ranks();
    let draw = |title: &str, unit: &str, value: &dyn Fn(&Point) -> f64| {
        let svg = plot(&series(results, value), &ranks, unit, title);
        format!("<figure>\n<figcaption>{title}</figcaption>\n{svg}</figure>\n")
    };
    let [first, last] = &results.parameters;
    format!(
        "<h2>{}</h2>\n<p class=\"what\">On one rank {}; on {} ranks {}.</p>\n\
         <ul class=\"legend\">\n{}</ul>\n<section class=\"plots\">\n{}{}</section>\n\
         <div class=\"scroll\">\n{}</div>\n",
        escape(&results.title()),
        escape(first),
        ranks.last().unwrap_or(&1),
        escape(last),
        legend(results),
        draw("Speed-up", "rate / rate of the base", &|point| results.speedup(point)),
        draw("Normalised throughput", "speed-up / ranks", &|point| {
            results.speedup(point) / point.ranks as f64
        }),
        statements(&results.verdicts),
    )
}

fn series(results: &FigureResults, value: &dyn Fn(&Point) -> f64) -> Vec<Series> {
    let line = |(style, variant): (usize, Variant)| {
        let points = results.points.iter().filter(|point| point.variant == variant);
        let values =
            points.map(|point| Value { ranks: point.ranks, spread: Spread::of([value(point)]) });
        let class = format!("s{}", style + 3);
        Series {
            name: variant.name().to_owned(),
            class,
            style: style + 3,
            has_ranks: true,
            values: values.collect(),
        }
    };
    results.figure.variants().enumerate().map(line).collect()
}

fn legend(results: &FigureResults) -> String {
    let Figure { versions, .. } = results.figure;
    let item = |(style, variant): (usize, Variant)| {
        let further = if style < versions.len() { "" } else { " (not in the figure)" };
        format!(
            "<li><svg class=\"key\" viewBox=\"-8 -6 16 12\" aria-hidden=\"true\"><g class=\"s{}\">{}</g>\
             </svg>{}{further}</li>\n",
            style + 3,
            mark(style + 3),
            variant.name()
        )
    };
    results.figure.variants().enumerate().map(item).collect::<String>()
}

fn statements(verdicts: &[Verdict]) -> String {
    let row = |verdict: &Verdict| {
        let Verdict { statement, found, .. } = verdict;
        let outcome = verdict.outcome();
        format!(
            "<tr><td class=\"text\">{}</td><td class=\"{outcome}\">{outcome}</td><td class=\"text\">{}</td>\
             <td class=\"text\">{}</td></tr>\n",
            escape(statement.says),
            escape(found),
            escape(statement.assumption)
        )
    };
    format!(
        "<table>\n<thead><tr><th class=\"text\">What the text says</th><th>Outcome</th>\
         <th class=\"text\">What came out</th><th class=\"text\">What decides it</th></tr></thead>\n\
         <tbody>\n{}</tbody>\n</table>\n",
        verdicts.iter().map(row).collect::<String>()
    )
}
