//! Comparison of our runtime with peers: the same figures, sampled alternately in every round.
//!
//! A disturbance of the machine affects all contenders sampled in that round, so ratios are formed
//! round by round.

use std::collections::BTreeMap;

use crate::measure::Report;

/// Name of the contender that the others are compared with.
pub(crate) const OURS: &str = "talpf";

/// Samples by figure, contender and round.
#[derive(Debug, Default)]
pub(crate) struct Contest {
    figures: Vec<(String, Contenders)>,
}

type Contenders = Vec<(&'static str, BTreeMap<usize, f64>)>;

impl Contest {
    /// Adds a sample. The name of a figure ends in its unit: `_ns`, `_us`, `_mops`, `_gbs`,
    /// `_mups`, `_mpairs`, `_mflops`.
    pub(crate) fn record(
        &mut self,
        round: usize,
        contender: &'static str,
        figure: &str,
        value: f64,
    ) {
        let contenders = entry(&mut self.figures, |name| name == figure, || figure.to_owned());
        entry(contenders, |name| *name == contender, || contender).insert(round, value);
    }

    /// Prints all figures and adds them to a report: ours under its name, a peer's under
    /// `name.peer`, and ours divided by the peer's under `name.vs_peer`.
    pub(crate) fn report(self, report: &mut Report) {
        for (figure, contenders) in self.figures {
            let unit = unit_of(&figure);
            let samples = |of: &BTreeMap<usize, f64>| of.values().copied().collect();
            let ours = contenders.iter().find(|(name, _)| *name == OURS).map(|(_, ours)| ours);
            if let Some(ours) = ours {
                report.add(&figure, unit, samples(ours));
            }
            for (peer, theirs) in contenders.iter().filter(|(name, _)| *name != OURS) {
                report.add(&format!("{figure}.{peer}"), unit, samples(theirs));
                let of_round = |(round, ours): (&usize, &f64)| Some(ours / theirs.get(round)?);
                let ratios: Vec<f64> = ours.into_iter().flatten().filter_map(of_round).collect();
                if !ratios.is_empty() {
                    report.add(&format!("{figure}.vs_{peer}"), "x", ratios);
                }
            }
        }
    }
}

/// Returns the value whose key `is` accepts, and inserts a default one if no key matches.
fn entry<K, V: Default>(
    list: &mut Vec<(K, V)>,
    is: impl Fn(&K) -> bool,
    key: impl FnOnce() -> K,
) -> &mut V {
    let found = list.iter().position(|(key, _)| is(key));
    let index = found.unwrap_or_else(|| {
        list.push((key(), V::default()));
        list.len() - 1
    });
    &mut list[index].1
}

fn unit_of(figure: &str) -> &'static str {
    match figure.rsplit('_').next() {
        Some("ns") => "ns",
        Some("us") => "us",
        Some("mops") => "M/s",
        Some("gbs") => "GB/s",
        Some("mups") => "Mupdates/s",
        Some("mpairs") => "Mpairs/s",
        Some("mflops") => "Mflop/s",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_formed_round_by_round() {
        let mut contest = Contest::default();
        for (round, ours, theirs) in [(0, 1.0, 2.0), (1, 30.0, 60.0), (2, 8.0, 2.0)] {
            contest.record(round, OURS, "send_us", ours);
            contest.record(round, "other", "send_us", theirs);
        }
        contest.record(3, OURS, "send_us", 5.0);
        let mut report = Report::new("");
        contest.report(&mut report);
        let median = |name: &str| report.metrics()[name].median;
        assert_eq!(median("send_us"), 8.0);
        assert_eq!(median("send_us.other"), 2.0);
        assert_eq!(median("send_us.vs_other"), 0.5);
        assert_eq!(report.metrics()["send_us.other"].unit, "us");
    }

    #[test]
    fn peers_without_ours_are_reported_without_ratio() {
        let mut contest = Contest::default();
        contest.record(0, "other", "rate_mops", 3.0);
        let mut report = Report::new("");
        contest.report(&mut report);
        assert_eq!(report.metrics().keys().collect::<Vec<_>>(), ["rate_mops.other"]);
    }
}
