//! What differs, in sentences, and whether it can be believed.
//!
//! All variants are compared with the first one that has ranks, which does not depend on what came
//! out. A difference is told as one only where the runs of both do not overlap and that is unlikely
//! to happen by chance to any of the variants looked at.

use talpf_traces::counted;

use super::Scaling;
use super::results::{Point, Results};

/// A chance that is no longer taken for one.
const UNLIKELY: f64 = 0.05;

/// Sentences about the variants with ranks on the largest number of ranks.
pub(super) fn findings(results: &Results) -> Vec<String> {
    let most = results.points.iter().map(|point| point.ranks).max().unwrap_or(1);
    let mut there = results.points.iter().filter(|p| p.way.variant.has_ranks() && p.ranks == most);
    let mut sentences = Vec::new();
    if let Some(base) = there.next() {
        let others: Vec<&Point> = there.collect();
        let chance = chance(results.repeat, others.len());
        let apart = |other: &&Point| other.most() < base.least() || base.most() < other.least();
        let (name, speedup) = (base.way.name(), base.speedup);
        sentences.push(format!(
            "On {} {name} takes {}, {speedup:.2} times the rate of serial.",
            counted(most, "rank"),
            time(base.median())
        ));
        if !others.is_empty() && chance > UNLIKELY {
            sentences.push(format!(
                "{} {} too few to tell {} from it: by chance one of them may stand apart with a \
                 probability of {:.0} %.",
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
                    "Of {} interleaved runs each, none overlap there; noise alone does that to any \
                     of the variants with a probability of at most {:.1} %.",
                    results.repeat,
                    100.0 * chance
                ));
            }
            if !alike.is_empty() {
                let names: Vec<_> = alike.iter().map(|other| other.way.name()).collect();
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
        sentences.push(format!("{all}{points} computed the same bits as serial."));
    }
    sentences
}

/// How `other` differs from `base`, and in what their traces differ, where those do not overlap.
fn difference(base: &Point, other: &Point) -> String {
    let ratio = base.median() / other.median();
    let (factor, word) = if ratio >= 1.0 { (ratio, "faster") } else { (1.0 / ratio, "slower") };
    let start =
        format!("{} is {factor:.2} times {word} ({})", other.way.name(), time(other.median()));
    let [here, there] = [base, other].map(|point| point.traced(|trace| trace.idle));
    if here.most < there.least || there.most < here.least {
        let (here, there) = (100.0 * here.median, 100.0 * there.median);
        format!("{start}, and its workers are idle for {there:.0} % instead of {here:.0} %.")
    } else {
        format!("{start}; the idle shares of the traced runs overlap.")
    }
}

/// The probability, at most, that `runs` runs of any of `others` variants stand all before or all
/// after as many of the first, if all are alike: each of the ways to order them is as likely.
fn chance(runs: usize, others: usize) -> f64 {
    let orders: f64 = (1..=runs).map(|k| (runs + k) as f64 / k as f64).product();
    (2.0 * others as f64 / orders).min(1.0)
}

/// A time in a unit that suits it.
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
