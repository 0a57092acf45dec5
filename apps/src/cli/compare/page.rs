//! Page of results: one file without scripts or external resources.

use talpf_traces::counted;

use super::Scaling;
use super::plot::{mark, plot};
use super::results::{Point, Results};
use super::series::{Series, series};
use super::table::{heads, row};

pub(crate) const STYLE: &str = include_str!("page.css");

/// Formats the whole page.
pub(super) fn page(results: &Results, findings: &[String]) -> String {
    let simulated = match (&results.simulated, &results.dilated) {
        (Some(_), _) => ", simulated",
        (_, Some(_)) => ", dilated",
        _ => "",
    };
    let title = format!("{}: variants compared{simulated}", results.app);
    let sentences: String =
        findings.iter().map(|sentence| format!("<p>{}</p>\n", escape(sentence))).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p class=\"what\">{}</p>\n<section class=\"findings\">\n{sentences}</section>\n\
         <ul class=\"legend\">\n{}</ul>\n<section class=\"plots\">\n{}</section>\n\
         <h2>All points</h2>\n<div class=\"scroll\">\n{}</div>\n\
         <h2>Conditions</h2>\n<dl>\n{}</dl>\n</main>\n</body>\n</html>\n",
        escape(&what(results)),
        legend(results),
        plots(results),
        table(results),
        conditions(results),
    )
}

fn what(results: &Results) -> String {
    let parameters = results.parameters.iter().map(|(name, value)| format!("{name} {value}"));
    let parameters = parameters.collect::<Vec<_>>().join(", ");
    let scaling = match results.scaling {
        Scaling::Strong => "Strong scaling: all ranks share this problem.",
        Scaling::Weak => {
            "Weak scaling: the work grows with the ranks; the problem shown is that of one rank."
        }
    };
    if let Some(simulation) = &results.simulated {
        return format!("{parameters}. {scaling} Times are virtual, of {simulation}.");
    }
    let (timed, traced) = (counted(results.repeat, "timed run"), counted(results.traced, "run"));
    let medians = if results.repeat == 1 { "Times are of" } else { "Medians of" };
    let dilated = results.dilated.as_ref().map(|dilation| format!("Times are {dilation}. "));
    let dilated = dilated.unwrap_or_default();
    format!(
        "{parameters}. {scaling} {dilated}{medians} {timed}, and of {traced} with a trace; bars reach from \
         the least to the most."
    )
}

fn legend(results: &Results) -> String {
    let item = |series: Series| {
        let Series { name, class, style, has_ranks, .. } = series;
        let line = "<line x1=\"-8\" x2=\"8\" y1=\"0\" y2=\"0\"/>";
        let shape = if has_ranks { mark(style) } else { line };
        format!(
            "<li><svg class=\"key\" viewBox=\"-8 -6 16 12\" aria-hidden=\"true\"><g class=\"{class}\">{shape}</g></svg>{name}</li>\n"
        )
    };
    series(results, true, |point| point.timed(|seconds| seconds)).into_iter().map(item).collect()
}

fn plots(results: &Results) -> String {
    let mut ranks: Vec<usize> = results.points.iter().map(|point| point.ranks).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let figure = |title: &str, unit: &str, lines: Vec<Series>| {
        let svg = plot(&lines, &ranks, unit, title);
        format!("<figure>\n<figcaption>{title}</figcaption>\n{svg}</figure>\n")
    };
    let rate = |point: &Point, of: f64| point.timed(|seconds| of * point.median() / seconds);
    [
        figure("Time", "ms", series(results, true, |point| point.timed(|seconds| seconds * 1e3))),
        figure(
            "Speed-up",
            &format!("rate / rate of {}", results.base()),
            series(results, true, |point| rate(point, point.speedup)),
        ),
        figure(
            "Normalised throughput",
            "speed-up / cores",
            series(results, true, |point| rate(point, point.normalised)),
        ),
        figure(
            "Cost of a sync, own work done to its end",
            "us",
            series(results, false, |point| point.traced(|trace| trace.sync_us)),
        ),
        figure(
            "Idle: workers without a kernel",
            "%",
            series(results, true, |point| point.traced(|trace| 100.0 * trace.idle)),
        ),
        figure(
            "Messages",
            "count",
            series(results, false, |point| point.traced(|trace| trace.messages as f64)),
        ),
    ]
    .concat()
}

fn table(results: &Results) -> String {
    let cells = |tag: &str, cells: &[String]| {
        cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect::<String>()
    };
    let rows =
        results.points.iter().map(|point| format!("<tr>{}</tr>\n", cells("td", &row(point))));
    format!(
        "<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>\n",
        cells("th", &heads(results)),
        rows.collect::<String>()
    )
}

fn conditions(results: &Results) -> String {
    let line = |(name, value): &(&str, String)| {
        format!("<div><dt>{name}</dt><dd>{}</dd></div>\n", escape(value))
    };
    results.conditions.iter().map(line).collect()
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_markup() {
        assert_eq!(escape("<a b=\"c\"> & d"), "&lt;a b=&quot;c&quot;&gt; &amp; d");
    }
}
