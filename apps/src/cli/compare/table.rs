//! Table of results, for terminals and for the page.

use super::findings::time;
use super::results::{Point, Results};

/// Returns the heads of the columns.
pub(super) fn heads(results: &Results) -> [String; 11] {
    [
        "variant",
        "ranks",
        "time",
        "least",
        "most",
        results.unit,
        "speed-up",
        "per core",
        "messages",
        "bytes",
        "idle",
    ]
    .map(str::to_owned)
}

/// Returns a row of the table.
pub(super) fn row(point: &Point) -> [String; 11] {
    let (messages, bytes) = point.traffic();
    let ranks =
        if point.method.variant.has_ranks() { point.ranks.to_string() } else { "-".to_owned() };
    [
        point.method.name(),
        ranks,
        time(point.median()),
        time(point.least()),
        time(point.most()),
        format!("{:.1}", point.rate),
        format!("{:.2}", point.speedup),
        format!("{:.2}", point.normalised),
        messages.to_string(),
        amount(bytes),
        format!("{:.0} %", 100.0 * point.traced(|trace| trace.idle).median),
    ]
}

/// Formats all rows under their heads, in aligned columns.
pub(super) fn table(results: &Results) -> String {
    let mut rows = vec![heads(results)];
    rows.extend(results.points.iter().map(row));
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|col| rows.iter().map(|row| row[col].len()).max().unwrap_or(0))
        .collect();
    let line = |row: &[String; 11]| {
        let first = format!("{:<width$}", row[0], width = widths[0]);
        let rest =
            row.iter().zip(&widths).skip(1).map(|(cell, &width)| format!("  {cell:>width$}"));
        first + &rest.collect::<String>() + "\n"
    };
    rows.iter().map(line).collect()
}

fn amount(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}
