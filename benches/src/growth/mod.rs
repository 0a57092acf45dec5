//! Growth: the cost per unit of everything a program can have many of.
//!
//! A row measures one such number at sizes a factor of ten apart. The cost per unit should be the
//! same at all sizes: a row fails if it is more than twice as high at the largest size as at a
//! hundred. A hundred units are in a fast cache and the largest number is not; where units can be
//! divided, the row compares as many units in groups of a hundred, which need the same memory, and
//! what these cost above a single hundred is the part of the caches. The quick mode counts
//! instructions in place of time, since no other program and no cache disturbs these.

mod count;
mod fit;
mod inputs;
mod large_puts;
mod many;
mod messages;
mod meter;
mod plan;
mod puts;
mod ranks;
mod row;
mod shape;
mod slots;
mod tiles;
mod windows;

use talpf::Settings;

pub use self::count::measure as measure_counted;
use self::fit::exponent;
use self::plan::{Plan, WORKERS};
use self::row::{MOST_GROWTH, Row};
use self::shape::Shape;
use crate::conditions;
use crate::core_to_core;
use crate::error::Error;
use crate::measure::Report;
use crate::print_line::print_line;

/// Selection of measurements.
#[derive(Clone, Debug)]
pub struct Options {
    /// Beginning of the names of the rows to measure.
    pub only: String,
    /// `true` if instructions are counted in place of time.
    pub quick: bool,
}

fn rows() -> impl Iterator<Item = &'static Row> {
    let groups: [&'static [Row]; 8] = [
        &tiles::ROWS,
        &inputs::ROWS,
        &many::ROWS,
        &windows::ROWS,
        &slots::ROWS,
        &puts::ROWS,
        &ranks::ROWS,
        &messages::ROWS,
    ];
    groups.into_iter().flatten().chain(&large_puts::ROWS)
}

/// Measures the rows. Rows that grow faster than their work are a failure of the report.
///
/// **Errors**: those of the measured crates; no row of that name; in quick mode, valgrind not
/// installed.
pub fn run(options: &Options) -> Result<Report, Error> {
    let only = options.only.as_str();
    if !rows().any(|row| row.name.starts_with(only)) {
        return Err(Error::NoSuchFigure { name: only.to_owned() });
    }
    let mut report = Report::new("");
    let grown = if options.quick { count(only, &mut report)? } else { time(only, &mut report)? };
    if !grown.is_empty() {
        report.fail(Error::Grows { rows: grown });
    }
    Ok(report)
}

/// Measures times. Returns the names of the rows that grow.
fn time(only: &str, report: &mut Report) -> Result<Vec<String>, Error> {
    print_line(format_args!(
        "# growth: {}, {WORKERS} workers, idle policy {}, polling {}, link inproc, no randomness, \
         median [min .. max] of 5 to 101 rounds",
        conditions::machine(),
        Plan::Times.runtime()?.idle,
        Settings::load(None)?.polling()?,
    ));
    let mut grown = Vec::new();
    for row in rows().filter(|row| row.name.starts_with(only)) {
        report.add(core_to_core::NAME, "ns", vec![core_to_core::sample()]);
        print_line(format_args!("# {}: {}", row.name, row.what));
        let mut costs = Vec::new();
        for &size in row.sizes {
            let name = figure(row, size);
            report.add(&name, row.unit, row.measure(Plan::Times, size)?);
            costs.push((size, report.metrics()[&name].median));
        }
        report.add(&format!("growth.{}.exponent", row.name), "", vec![exponent(&costs)]);
        let cost_at = |size: usize| costs.iter().find(|cost| cost.0 == size).map(|cost| cost.1);
        let mut compared = [row.base(), row.largest()]
            .map(|size| (size.to_string(), cost_at(size).unwrap_or(f64::NAN)));
        if let Some(shape) = row.groups() {
            let name = format!("{}_groups", figure(row, shape.size));
            report.add(&name, row.unit, row.measure_groups()?);
            let in_groups = report.metrics()[&name].median;
            print_caches(row, shape, in_groups / compared[0].1);
            compared[0] = (format!("{} x {}", shape.groups, shape.size), in_groups);
        }
        grown.extend(judge(row, &compared, row.target));
    }
    Ok(grown)
}

/// Counts instructions. Returns the names of the rows that grow.
fn count(only: &str, report: &mut Report) -> Result<Vec<String>, Error> {
    print_line(format_args!("# growth: instructions per unit, counted by callgrind, 1 worker"));
    let mut grown = Vec::new();
    for (row, costs) in count::count(only)? {
        let sizes = count::sizes(row);
        for (size, cost) in sizes.into_iter().zip(costs) {
            report.add(&format!("{}.instructions", figure(row, size)), "", vec![cost]);
        }
        let compared = [0, 1].map(|at| (sizes[at].to_string(), costs[at]));
        grown.extend(judge(row, &compared, None));
    }
    Ok(grown)
}

fn figure(row: &Row, size: usize) -> String {
    format!("growth.{}.{size}", row.name)
}

/// Prints the part of the growth that is one of the caches: the cost in groups as a multiple of the
/// cost of a single one.
fn print_caches(row: &Row, shape: Shape, ratio: f64) {
    let (name, Shape { groups, size }) = (row.name, shape);
    print_line(format_args!(
        "# {name}: in {groups} groups of {size} {ratio:.2} times that of one group, by the caches"
    ));
}

/// Prints the growth of a row between two sizes or shapes, given with their costs. Returns the name
/// of the row if it grows too much.
fn judge(row: &Row, compared: &[(String, f64); 2], target: Option<f64>) -> Option<String> {
    let [(base, base_cost), (largest, cost)] = compared;
    let ratio = cost / base_cost;
    let is_too_much = ratio.is_nan() || ratio > MOST_GROWTH;
    let verdict = if is_too_much { "TOO MUCH" } else { "ok" };
    let target = target.map(|target| {
        let is_met = if *cost <= target { "met" } else { "not met" };
        format!("; target {target:.2} {}: {is_met}", row.unit)
    });
    let (name, target) = (row.name, target.unwrap_or_default());
    print_line(format_args!(
        "# {name}: at {largest} {ratio:.2} times that at {base}, {verdict}{target}"
    ));
    is_too_much.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: &[usize] = &[100, 1_000];
    const ROW: Row = Row::new("row", "", SIZES, |_, _| Ok(Vec::new())).target(5.0);

    #[test]
    fn a_row_fails_beyond_twice_the_cost_whatever_is_asked() {
        let sizes = ["100", "1000"].map(str::to_owned);
        let grown = |costs: [f64; 2]| {
            judge(&ROW, &[0, 1].map(|at| (sizes[at].clone(), costs[at])), ROW.target)
        };
        assert_eq!(grown([1.0, 2.0]), None);
        assert_eq!(grown([1.0, 2.01]).as_deref(), Some("row"));
        assert_eq!(grown([10.0, 10.0]), None);
    }

    #[test]
    fn a_cost_that_is_no_number_fails() {
        let compared = [("100", f64::NAN), ("1000", 1.0)].map(|(of, cost)| (of.to_owned(), cost));
        assert!(judge(&ROW, &compared, None).is_some());
    }

    #[test]
    fn names_are_unique_and_sizes_ascend() {
        let names: std::collections::BTreeSet<_> = rows().map(|row| row.name).collect();
        assert_eq!(names.len(), rows().count());
        for row in rows() {
            assert!(row.sizes.is_sorted() && row.sizes.len() > 1, "{}", row.name);
            assert!(row.counted.is_none_or(|most| most > row.base()), "{}", row.name);
        }
    }
}
