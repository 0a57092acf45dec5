//! Statements of chapter 7 on its figures, and how each is judged.
//!
//! A statement is in our words, with the limits in numbers that we read into it.

use serde_json::{Value, json};
use talpf_apps::run::Variant::{
    self, TalpfCached, TalpfCachedAck, TalpfCachedBarrier, TalpfDefault, TalpfGet, Tampi,
};

use super::results::FigureResults;

/// Statement of the text.
pub(super) struct Statement {
    /// The statement, with the limits by which it is judged.
    pub(super) says: &'static str,
    /// Assumption that decides the outcome.
    pub(super) assumption: &'static str,
    judge: fn(&FigureResults) -> Finding,
}

/// `true` if the results agree, and what they are.
type Finding = (bool, String);

/// Outcome of a statement.
pub(super) struct Verdict {
    pub(super) statement: &'static Statement,
    pub(super) agrees: bool,
    /// Results that were judged.
    pub(super) found: String,
}

impl Statement {
    pub(super) fn judge(&'static self, results: &FigureResults) -> Verdict {
        let (agrees, found) = (self.judge)(results);
        Verdict { statement: self, agrees, found }
    }
}

impl Verdict {
    /// Returns the outcome in a word.
    pub(super) fn outcome(&self) -> &'static str {
        if self.agrees { "agrees" } else { "differs" }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "says": self.statement.says,
            "outcome": self.outcome(),
            "found": self.found,
            "assumption": self.statement.assumption,
        })
    }
}

const NETWORK: &str =
    "Latency, bandwidth and overheads of the network, of which the text gives none.";
const BLOCKS: &str = "The number of tasks, which the text gives by its traces alone: what is left over \
                      after rounds of 31 tasks is idle time.";
const OVERLAP: &str = "Windows and puts by block: a task waits for the piece of a halo that it reads, not \
                       for the sync, so that steps overlap. A version with one window for a halo would \
                       not.";
const CHAINS: &str = "The order of ready tasks: by priority, then the successor of the task that has \
                      ended, then by age. The text has turned immediate successors off.";
const COSTS: &str =
    "Costs of tasks, which do not depend on caches or on what others do to the memory.";

pub(super) const JACOBI_STRONG: &[Statement] = &[
    Statement {
        says: "TALPF(D) does not scale well above 4 ranks: from 8 ranks on it is more than 2 % behind \
               TALPF(C), up to 4 it is not.",
        assumption: NETWORK,
        judge: |results| {
            let behind = |ranks| lag(results, TalpfDefault, TalpfCached, ranks);
            let (few, many): (Vec<_>, Vec<_>) =
                results.ranks().into_iter().partition(|ranks| *ranks <= 4);
            let agrees = few.iter().all(|ranks| behind(*ranks) <= 0.02)
                && many.iter().all(|ranks| behind(*ranks) > 0.02);
            (agrees, of_each(results, "TALPF(D) is behind TALPF(C) by", behind))
        },
    },
    Statement {
        says: "TALPF(C) keeps a good performance until 32 ranks: at least 0.8 of that of one rank.",
        assumption: BLOCKS,
        judge: |results| {
            let last = results.normalised(TalpfCached, most(results));
            (last >= 0.8, format!("{last:.3} on {} ranks.", most(results)))
        },
    },
    Statement {
        says: "The worst version loses about 15 %: 10 to 20 %.",
        assumption: BLOCKS,
        judge: |results| {
            let loss = 1.0 - worst(results).1;
            let (variant, _) = worst(results);
            ((0.1..=0.2).contains(&loss), format!("{} loses {}.", variant.name(), percent(loss)))
        },
    },
    Statement {
        says: "Both versions of TALPF outperform TAMPI on few ranks: 2 and 4.",
        assumption: COSTS,
        judge: |results| {
            let ahead = |ranks: &usize| {
                [TalpfDefault, TalpfCached]
                    .iter()
                    .all(|variant| lag(results, *variant, Tampi, *ranks) < 0.0)
            };
            let value = |ranks: usize| lag(results, TalpfCached, Tampi, ranks);
            let found = of_each(results, "TALPF(C) is behind TAMPI by", value);
            ([2, 4].iter().all(ahead), found)
        },
    },
];

pub(super) const JACOBI_WEAK: &[Statement] = &[Statement {
    says: "All versions keep a good scalability: at least 0.9 of the throughput of one rank.",
    assumption: OVERLAP,
    judge: |results| {
        let (variant, value) = worst(results);
        (value >= 0.9, format!("The least is {value:.3}, of {}.", variant.name()))
    },
}];

pub(super) const GAUSS_SEIDEL_STRONG: &[Statement] = &[
    Statement {
        says: "TALPF(D) has half of the throughput of the base on 2 to 8 ranks: 0.4 to 0.6.",
        assumption: "The number of blocks: a rank has to have more than 31 of them in a wavefront.",
        judge: |results| {
            let ranks: Vec<_> =
                results.ranks().into_iter().filter(|ranks| (2..=8).contains(ranks)).collect();
            let value = |ranks: usize| results.normalised(TalpfDefault, ranks);
            let agrees = ranks.iter().all(|ranks| (0.4..=0.6).contains(&value(*ranks)));
            (agrees, values(&ranks, value))
        },
    },
    Statement {
        says: "Above 8 ranks it loses even more.",
        assumption: "The number of blocks, as before.",
        judge: |results| {
            let ranks: Vec<_> = results.ranks().into_iter().filter(|ranks| *ranks >= 8).collect();
            let value = |ranks: usize| results.normalised(TalpfDefault, ranks);
            let agrees = ranks.windows(2).all(|pair| value(pair[1]) < value(pair[0]));
            (agrees && ranks.len() > 1, values(&ranks, value))
        },
    },
    Statement {
        says: "TAMPI keeps a good scalability: at least 0.8 of the throughput of one rank.",
        assumption: OVERLAP,
        judge: |results| {
            let least = least_of_tampi(results);
            (least >= 0.8, format!("The least of TAMPI is {least:.3}."))
        },
    },
];

pub(super) const GAUSS_SEIDEL_WEAK: &[Statement] = &[
    Statement {
        says: "The least throughput of TALPF(D) is around half of the base: 0.4 to 0.6.",
        assumption: "The number of blocks of a rank, as in figure 7.7.",
        judge: |results| {
            let value = |ranks: usize| results.normalised(TalpfDefault, ranks);
            let least = results.ranks().into_iter().map(value).fold(f64::MAX, f64::min);
            ((0.4..=0.6).contains(&least), format!("The least is {least:.3}."))
        },
    },
    Statement {
        says: "TAMPI does not have a good weak scalability: less than 0.8.",
        assumption: OVERLAP,
        judge: |results| {
            let least = least_of_tampi(results);
            (least < 0.8, format!("The least of TAMPI is {least:.3}."))
        },
    },
];

pub(super) const NBODY_STRONG: &[Statement] = &[
    Statement {
        says: "All versions are alike on up to 4 ranks: within 5 %.",
        assumption: CHAINS,
        judge: |results| {
            let ranks: Vec<_> = results.ranks().into_iter().filter(|ranks| *ranks <= 4).collect();
            let value = |ranks: usize| spread(results, ranks);
            let agrees = ranks.iter().all(|ranks| value(*ranks) <= 0.05);
            (agrees, format!("The best is before the worst by {}", percents(&ranks, value)))
        },
    },
    Statement {
        says: "TALPF(D) and TALPF(C|B) are significantly slower than TALPF(C w/ ACK) on many ranks: by \
               5 % on the most.",
        assumption: CHAINS,
        judge: barriers_behind_ack,
    },
    Statement {
        says: "Above 4 ranks TALPF loses performance faster than TAMPI: by 2 % on the most.",
        assumption: CHAINS,
        judge: |results| behind_tampi(results, 0.02),
    },
];

pub(super) const NBODY_WEAK: &[Statement] = &[
    Statement {
        says: "TALPF(C w/ ACK) is followed by the two versions with a barrier: by 5 % on the most ranks.",
        assumption: CHAINS,
        judge: barriers_behind_ack,
    },
    Statement {
        says: "TAMPI is the fastest, and scales better: on the most ranks.",
        assumption: CHAINS,
        judge: |results| behind_tampi(results, 0.0),
    },
];

pub(super) const PRIORITIES: &[Statement] = &[
    Statement {
        says: "All versions of TALPF have a similar performance: within 5 % on all ranks.",
        assumption: CHAINS,
        judge: all_alike,
    },
    Statement {
        says: "TALPF GET(D) has the performance of TALPF(D): within 2 %.",
        assumption: NETWORK,
        judge: |results| {
            let lag = |ranks| lag(results, TalpfGet, TalpfDefault, ranks);
            let agrees = results.ranks().into_iter().all(|ranks| lag(ranks).abs() <= 0.02);
            (agrees, of_each(results, "TALPF GET(D) is behind TALPF(D) by", lag))
        },
    },
    Statement {
        says: "TALPF is similar to TAMPI: within 5 % on the most ranks.",
        assumption: CHAINS,
        judge: |results| {
            let lags = lags_behind_tampi(results);
            (lags.iter().all(|(_, lag)| lag.abs() <= 0.05), lags_text(&lags))
        },
    },
];

pub(super) const MATMUL_STRONG: &[Statement] = &[
    Statement {
        says: "All versions of TALPF have a similar performance: within 5 % on all ranks.",
        assumption: NETWORK,
        judge: all_alike,
    },
    Statement {
        says: "All lose around a third on 32 ranks: 25 to 42 %.",
        assumption: "16 chains of tasks for 31 cores, and the part of the next multiplication that \
                     overlaps.",
        judge: lose_a_third,
    },
    Statement {
        says: "TAMPI loses performance before the others: more than 5 % behind each on the most ranks.",
        assumption: "Two-sided messages that wait for each other in the network: the model has ports of \
                     full rate, and no congestion beyond.",
        judge: |results| {
            let lags = lags_behind_tampi(results);
            (lags.iter().all(|(_, lag)| *lag < -0.05), lags_text(&lags))
        },
    },
];

pub(super) const MATMUL_WEAK: &[Statement] = &[
    Statement {
        says: "The results are similar to those of figure 7.15: all lose around a third on 32 ranks, 25 \
               to 42 %.",
        assumption: "16 chains of tasks for 31 cores, and the part of the next multiplication that \
                     overlaps.",
        judge: lose_a_third,
    },
    Statement {
        says: "All versions of TALPF have a similar performance: within 5 % on all ranks.",
        assumption: NETWORK,
        judge: all_alike,
    },
];

/// Returns the share by which each version of TALPF is behind TAMPI on the most ranks.
fn lags_behind_tampi(results: &FigureResults) -> Vec<(Variant, f64)> {
    let versions = talpf_versions(results);
    versions.map(|variant| (variant, lag(results, variant, Tampi, most(results)))).collect()
}

fn lags_text(lags: &[(Variant, f64)]) -> String {
    let one = |(variant, lag): &(Variant, f64)| format!("{} {}", variant.name(), percent(*lag));
    let all = lags.iter().map(one).collect::<Vec<_>>().join(", ");
    format!("Behind TAMPI on the most ranks: {all}.")
}

fn behind_tampi(results: &FigureResults, least: f64) -> Finding {
    let lags = lags_behind_tampi(results);
    (lags.iter().all(|(_, lag)| *lag > least), lags_text(&lags))
}

fn least_of_tampi(results: &FigureResults) -> f64 {
    let value = |ranks: usize| results.normalised(Tampi, ranks);
    results.ranks().into_iter().map(value).fold(f64::MAX, f64::min)
}

/// Returns the versions of the figure that are of TALPF.
fn talpf_versions(results: &FigureResults) -> impl Iterator<Item = Variant> {
    results.figure.versions.iter().copied().filter(|variant| *variant != Tampi)
}

fn barriers_behind_ack(results: &FigureResults) -> Finding {
    let behind = [TalpfDefault, TalpfCachedBarrier]
        .map(|variant| lag(results, variant, TalpfCachedAck, most(results)));
    let found = format!(
        "TALPF(D) is behind by {}, TALPF(C|B) by {} on {} ranks.",
        percent(behind[0]),
        percent(behind[1]),
        most(results)
    );
    (behind.iter().all(|lag| *lag >= 0.05), found)
}

fn all_alike(results: &FigureResults) -> Finding {
    let value = |ranks: usize| spread(results, ranks);
    let agrees = results.ranks().into_iter().all(|ranks| value(ranks) <= 0.05);
    (agrees, of_each(results, "The best is before the worst by", value))
}

fn lose_a_third(results: &FigureResults) -> Finding {
    let ranks = most(results);
    let losses = talpf_versions(results).map(|variant| {
        let loss = 1.0 - results.normalised(variant, ranks);
        ((0.25..=0.42).contains(&loss), format!("{} loses {}", variant.name(), percent(loss)))
    });
    let (agree, found): (Vec<_>, Vec<_>) = losses.unzip();
    let agrees = agree.into_iter().all(|agrees| agrees);
    (agrees, format!("On {ranks} ranks {}.", found.join(", ")))
}

/// Returns the largest number of ranks.
fn most(results: &FigureResults) -> usize {
    results.ranks().last().copied().unwrap_or(1)
}

/// Returns the share by which `variant` is slower than `other`.
fn lag(results: &FigureResults, variant: Variant, other: Variant, ranks: usize) -> f64 {
    1.0 - results.normalised(variant, ranks) / results.normalised(other, ranks)
}

/// Returns the share by which the slowest version of TALPF is slower than the fastest.
fn spread(results: &FigureResults, ranks: usize) -> f64 {
    let rates = talpf_versions(results).map(|variant| results.normalised(variant, ranks));
    let (least, most) =
        rates.fold((f64::MAX, 0.0_f64), |(least, most), rate| (least.min(rate), most.max(rate)));
    1.0 - least / most
}

/// Returns the version with the least normalised throughput of all points, and that.
fn worst(results: &FigureResults) -> (Variant, f64) {
    let versions = results.figure.versions.iter();
    let ranks = results.ranks();
    let all = versions.flat_map(|variant| {
        ranks.iter().map(|ranks| (*variant, results.normalised(*variant, *ranks)))
    });
    all.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((TalpfDefault, 0.0))
}

fn of_each(results: &FigureResults, what: &str, value: impl Fn(usize) -> f64) -> String {
    format!("{what} {}", percents(&results.ranks(), value))
}

fn percents(ranks: &[usize], value: impl Fn(usize) -> f64) -> String {
    list(ranks, |ranks| percent(value(ranks)))
}

fn values(ranks: &[usize], value: impl Fn(usize) -> f64) -> String {
    list(ranks, |ranks| format!("{:.3}", value(ranks)))
}

fn list(ranks: &[usize], value: impl Fn(usize) -> String) -> String {
    let (last, names) = (ranks.last(), ranks.iter().map(usize::to_string).collect::<Vec<_>>());
    let values = ranks.iter().map(|ranks| value(*ranks)).collect::<Vec<_>>();
    match last {
        None => "nothing, as there is no such number of ranks.".to_owned(),
        Some(_) => format!("{} on {} ranks.", values.join(", "), names.join(", ")),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::super::figures::{FIGURES, Size};
    use super::super::points::Point;
    use super::*;

    /// Returns the outcomes of the statements on a figure whose versions have these normalised
    /// throughputs.
    fn outcomes(number: &str, value: impl Fn(Variant, usize) -> f64) -> Vec<&'static str> {
        let figure = FIGURES.iter().find(|figure| figure.number == number).unwrap();
        let points = figure.points(Size::Full).into_iter().map(|(variant, ranks)| {
            let rate = ranks as f64 * value(variant, ranks);
            Point { variant, ranks, seconds: 1.0, rate }
        });
        let results = FigureResults::new(figure, Size::Full, points.collect());
        results.verdicts.iter().map(Verdict::outcome).collect()
    }

    #[test]
    fn jacobi_of_the_text_agrees_and_perfect_versions_do_not() {
        let of_the_text = |variant, ranks: usize| match variant {
            Tampi => 0.95,
            TalpfDefault if ranks > 4 => 0.85,
            TalpfDefault | TalpfCached => 1.0,
            _ => 0.5,
        };
        assert_eq!(outcomes("7.1", of_the_text), ["agrees"; 4]);
        let perfect = outcomes("7.1", |_, _| 1.0);
        assert_eq!(perfect, ["differs", "agrees", "differs", "differs"]);
    }

    #[test]
    fn gauss_seidel_of_the_text_agrees() {
        let of_the_text = |variant, ranks: usize| match (variant, ranks) {
            (Tampi, _) => 0.9,
            (_, 1) => 1.0,
            (_, 16) => 0.4,
            (_, 32) => 0.3,
            _ => 0.5,
        };
        assert_eq!(outcomes("7.7", of_the_text), ["agrees"; 3]);
    }

    #[test]
    fn every_statement_has_a_finding_and_its_assumption() {
        for figure in &FIGURES {
            for outcome in outcomes(figure.number, |_, ranks| 1.0 / ranks as f64) {
                assert!(["agrees", "differs"].contains(&outcome));
            }
            assert!(figure.statements.iter().all(|said| !said.assumption.is_empty()));
        }
    }
}
