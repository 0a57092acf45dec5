//! Differences between variants, in sentences, with their statistical significance.
//!
//! All variants are compared with the first one that has ranks, a choice that does not depend on
//! the results. A difference is reported only if the runs of both variants do not overlap, and if
//! chance alone is unlikely to separate any of the variants.

use talpf_traces::counted;

use super::Scaling;
use super::results::{Point, Results};

/// Largest probability of chance at which a difference is reported.
const UNLIKELY: f64 = 0.05;

/// Describes the variants with ranks on the largest number of ranks.
pub(super) fn findings(results: &Results) -> Vec<String> {
    let most = results.points.iter().map(|point| point.ranks).max().unwrap_or(1);
    let mut there =
        results.points.iter().filter(|p| p.method.variant.has_ranks() && p.ranks == most);
    let simulated = results.simulated.as_ref();
    let mut sentences: Vec<String> =
        simulated.map(|simulation| format!("Simulated: {simulation}.")).into_iter().collect();
    sentences.extend(dilated(results));
    if let Some(base) = there.next() {
        let others: Vec<&Point> = there.collect();
        let chance = chance(results.repeat, others.len());
        let apart = |other: &&Point| other.most() < base.least() || base.most() < other.least();
        let (name, speedup) = (base.method.name(), base.speedup);
        sentences.push(format!(
            "On {} {name} takes {}, {speedup:.2} times the rate of {}.",
            counted(most, "rank"),
            time(base.median()),
            results.base()
        ));
        if simulated.is_some() {
            sentences.extend(others.into_iter().map(|other| difference(base, other)));
        } else if !others.is_empty() && chance > UNLIKELY {
            sentences.push(format!(
                "{} {} too few to distinguish {} from it: chance alone \
                 separates one of them with a probability of {:.0} %.",
                counted(results.repeat, "timed run"),
                if results.repeat == 1 { "is" } else { "are" },
                counted(others.len(), "variant"),
                100.0 * chance
            ));
        } else {
            let (apart, alike): (Vec<_>, Vec<_>) = others.into_iter().partition(apart);
            sentences.extend(apart.iter().map(|other| difference(base, other)));
            if !apart.is_empty() {
                sentences.push(format!(
                    "Of {} interleaved runs each, none overlap there; chance alone \
                     separates one of the variants with a probability of at most {:.1} %.",
                    results.repeat,
                    100.0 * chance
                ));
            }
            if !alike.is_empty() {
                let names: Vec<_> = alike.iter().map(|other| other.method.name()).collect();
                sentences.push(format!(
                    "No difference to {name} is shown for {}: the runs overlap.",
                    names.join(", ")
                ));
            }
        }
    }
    if results.scaling == Scaling::Strong {
        let points = results.points.len();
        let all = if points == 1 { "" } else { "All " };
        let points = counted(points, "point");
        let serial =
            if simulated.is_some() || results.dilated.is_some() { "" } else { " as serial" };
        sentences.push(format!("{all}{points} computed the same bits{serial}."));
    }
    sentences
}

/// Describes virtual cores in dilated time, and how precise they were.
fn dilated(results: &Results) -> Option<String> {
    let overshoots = results.points.iter().filter_map(|point| Some((point, point.overshoot?)));
    let (point, worst) =
        overshoots.max_by(|(_, one), (_, other)| one.share().total_cmp(&other.share()))?;
    Some(format!(
        "Times are {}. Cores were given back late by {:.1} % of the time at most, with {} on {}.",
        results.dilated.as_ref()?,
        100.0 * worst.share(),
        point.method.name(),
        counted(point.ranks, "rank"),
    ))
}

/// Describes the difference between `other` and `base`, and that of their traces if these do not
/// overlap.
fn difference(base: &Point, other: &Point) -> String {
    let ratio = base.median() / other.median();
    let (factor, word) = if ratio >= 1.0 { (ratio, "faster") } else { (1.0 / ratio, "slower") };
    let start =
        format!("{} is {factor:.2} times {word} ({})", other.method.name(), time(other.median()));
    let [here, there] = [base, other].map(|point| point.traced(|trace| trace.idle));
    let is_alike = (100.0 * here.median).round() == (100.0 * there.median).round();
    if is_alike && here.least == here.most && there.least == there.most {
        format!("{start}.")
    } else if here.most < there.least || there.most < here.least {
        let (here, there) = (100.0 * here.median, 100.0 * there.median);
        format!("{start}, and its workers are idle for {there:.0} % instead of {here:.0} %.")
    } else {
        format!("{start}; the idle shares of the traced runs overlap.")
    }
}

/// Returns an upper bound of the probability that `runs` runs of any of `others` variants are all
/// before or all after those of the first one, if all variants are alike and all orders as likely.
fn chance(runs: usize, others: usize) -> f64 {
    let orders: f64 = (1..=runs).map(|k| (runs + k) as f64 / k as f64).product();
    (2.0 * others as f64 / orders).min(1.0)
}

/// Formats a time in a suitable unit.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_falls_with_runs_and_grows_with_variants() {
        assert_eq!(chance(1, 1), 1.0);
        assert!((chance(5, 1) - 2.0 / 252.0).abs() < 1e-12);
        assert!((chance(5, 5) - 10.0 / 252.0).abs() < 1e-12);
        assert_eq!(chance(2, 40), 1.0);
    }

    #[test]
    fn times_have_a_unit_that_suits() {
        let texts = [2.0, 0.5, 2e-5].map(time);
        assert_eq!(texts, ["2.00 s", "500.0 ms", "20.0 us"]);
    }
}
