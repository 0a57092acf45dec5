//! Differences as tables for a terminal.

use std::collections::BTreeMap;
use std::fmt;

use super::{Change, Diff};
use crate::table::{Table, time};

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.duration_ns.map(time);
        writeln!(f, "{first} -> {second}")?;
        for (which, machine) in ["first", "second"].iter().zip(&self.simulation) {
            if let Some(machine) = machine {
                writeln!(f, "simulated, {which} trace: {machine}")?;
            }
        }
        for (which, lost) in ["first", "second"].iter().zip(&self.lost) {
            for lost in lost {
                writeln!(f, "incomplete, {which} trace: {lost}")?;
            }
        }
        table(f, "task type", &self.tasks)?;
        table(f, "state", &self.states)?;
        table(f, "cost of syncs", &self.syncs)
    }
}

/// Writes a line for each name, those with most time first.
fn table(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    changes: &BTreeMap<String, Change>,
) -> fmt::Result {
    let mut table = Table::new(&[what, "count", "total", "median", "change", "spread", "changed"]);
    let mut changes: Vec<_> = changes.iter().collect();
    let total = |change: &Change| change.first.total_ns.max(change.second.total_ns);
    changes.sort_by_key(|(_, change)| std::cmp::Reverse(total(change)));
    for (name, change) in changes {
        let Change { first, second, median_change_ns, spread_ns, is_marked } = *change;
        let sign = if median_change_ns < 0 { '-' } else { '+' };
        let is_in_both = first.count > 0 && second.count > 0;
        let by = format!("{sign}{}", time(median_change_ns.unsigned_abs()));
        table.add(vec![
            name.clone(),
            format!("{} -> {}", first.count, second.count),
            format!("{} -> {}", time(first.total_ns), time(second.total_ns)),
            format!("{} -> {}", time(first.median_ns), time(second.median_ns)),
            if is_in_both { by } else { "-".to_owned() },
            time(spread_ns),
            if is_marked { "*" } else { "" }.to_owned(),
        ]);
    }
    table.write(f)
}
