//! SVG plot of a value over the number of ranks, one line per variant.
//!
//! Colours are CSS classes, `s0` to `s8`, that the page defines for light and dark mode.

use std::fmt::Write;

use talpf_traces::counted;

use super::series::{Series, Value};

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;

/// Draws `series`; `ranks` are the positions on the horizontal axis, `unit` is the label of the
/// vertical one, which starts at zero.
pub(crate) fn plot(series: &[Series], ranks: &[usize], unit: &str, title: &str) -> String {
    let values = || series.iter().flat_map(|series| &series.values);
    let highest = values().map(|value| value.spread.most).fold(0.0, f64::max);
    let step = nice_step(highest);
    let top = (highest / step).ceil().max(1.0) * step;
    let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - BOTTOM - TOP - 14.0);
    let x = |ranks_here: usize| {
        let index = ranks.iter().position(|&ranks| ranks == ranks_here).unwrap_or(0);
        let gaps = ranks.len().max(2) - 1;
        let first = if ranks.len() == 1 { 0.5 } else { 0.06 };
        LEFT + (WIDTH - LEFT - RIGHT) * (first + 0.88 * index as f64 / gaps as f64)
    };

    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n\
         <text class=\"unit\" x=\"4\" y=\"14\">{unit}</text>\n"
    );
    let mut level = 0.0;
    while level <= top * 1.0001 {
        let (at, text) = (y(level), tick(level, step));
        put(
            &mut svg,
            format_args!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                at + 4.0
            ),
        );
        level += step;
    }
    for &ranks in ranks {
        put(
            &mut svg,
            format_args!(
                "<text class=\"tick\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{ranks}</text>",
                x(ranks),
                HEIGHT - BOTTOM + 16.0
            ),
        );
    }
    put(
        &mut svg,
        format_args!(
            "<text class=\"unit\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">ranks</text>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 6.0
        ),
    );
    for (index, line) in series.iter().enumerate() {
        // Spread bars of different variants are side by side.
        let shift = 3.0 * (index as f64 - (series.len() as f64 - 1.0) / 2.0);
        draw(&mut svg, line, |value| (x(value.ranks) + shift, y(value.spread.median)), y);
    }
    svg + "</svg>\n"
}

fn draw(
    svg: &mut String,
    series: &Series,
    at: impl Fn(&Value) -> (f64, f64),
    y: impl Fn(f64) -> f64,
) {
    let Series { name, class, style, .. } = series;
    if let (false, [level]) = (series.has_ranks, &series.values[..]) {
        let height = y(level.spread.median);
        return put(
            svg,
            format_args!(
                "<g class=\"{class}\"><title>{name}: {}</title>\
             <line x1=\"{LEFT}\" x2=\"{}\" y1=\"{height:.1}\" y2=\"{height:.1}\"/></g>",
                short(level.spread.median),
                WIDTH - RIGHT
            ),
        );
    }
    put(svg, format_args!("<g class=\"{class}\">"));
    let places: Vec<String> = series
        .values
        .iter()
        .map(|value| {
            let (x, y) = at(value);
            format!("{x:.1},{y:.1}")
        })
        .collect();
    put(svg, format_args!("<polyline points=\"{}\"/>", places.join(" ")));
    for value in &series.values {
        let (x, height) = at(value);
        let spread = format!("{} to {}", short(value.spread.least), short(value.spread.most));
        put(
            svg,
            format_args!(
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
             <g transform=\"translate({x:.1} {height:.1})\">{}<title>{name}, {}: {} ({spread})</title></g>",
                y(value.spread.least),
                y(value.spread.most),
                mark(*style),
                counted(value.ranks, "rank"),
                short(value.spread.median)
            ),
        );
    }
    put(svg, format_args!("</g>"));
}

/// Returns the shape that marks points of a style, so that variants differ not only by colour.
pub(crate) fn mark(style: usize) -> &'static str {
    const MARKS: [&str; 11] = [
        "<circle r=\"3.5\"/>",
        "<path d=\"M-4 3.5H4L0 -4Z\"/>",
        "<path d=\"M-3.5 -3.5H3.5V3.5H-3.5Z\"/>",
        "<circle r=\"3.5\"/>",
        "<path d=\"M0 -4.5L4.5 0 0 4.5 -4.5 0Z\"/>",
        "<path d=\"M-4 3.5H4L0 -4Z\"/>",
        "<path d=\"M-4 -3.5H4L0 4Z\"/>",
        "<path d=\"M-4 -1.3H-1.3V-4H1.3V-1.3H4V1.3H1.3V4H-1.3V1.3H-4Z\"/>",
        "<path d=\"M-3.5 -3.5H3.5V3.5H-3.5Z\"/>",
        "<path d=\"M-4 0L3.5 -4V4Z\"/>",
        "<path d=\"M4 0L-3.5 -4V4Z\"/>",
    ];
    MARKS[style % MARKS.len()]
}

fn put(svg: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(svg, "{text}").expect("a string takes all");
}

/// Returns a step of 1, 2 or 5 times a power of ten that divides `highest` into five parts at most.
fn nice_step(highest: f64) -> f64 {
    if highest <= 0.0 {
        return 1.0;
    }
    let rough = highest / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(10.0 * power)
}

fn tick(level: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{level:.digits$}")
}

fn short(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        for (highest, step) in [(1.0, 0.2), (0.0, 1.0), (9.7, 2.0), (1234.0, 500.0), (4e-3, 1e-3)] {
            assert!((nice_step(highest) - step).abs() < 1e-9 * step, "{highest}");
        }
        assert_eq!((tick(0.4, 0.2), tick(500.0, 500.0)), ("0.4".into(), "500".into()));
    }
}
