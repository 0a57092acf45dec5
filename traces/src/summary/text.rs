//! Summary as tables for a terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{CriticalPath, Distribution, PathShare, RankSummary, Summary};
use crate::counted;
use crate::table::{Table, time};

/// Largest number of ranks with a line each, and of pairs that are listed.
const LINES: usize = 32;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { duration_ns, workers, ranks, .. } = self;
        let (ranks, workers) = (ranks.len() as u64, *workers);
        let (ranks, workers) = (counted(ranks, "rank"), counted(workers, "worker"));
        writeln!(f, "{}, {ranks}, {workers}", time(*duration_ns))?;
        if let Some(machine) = &self.simulation {
            writeln!(f, "simulated: {machine}")?;
        }
        for lost in &self.lost {
            writeln!(f, "incomplete: {lost}")?;
        }
        let efficiency = &self.efficiency;
        writeln!(
            f,
            "\nparallel efficiency {} = load balance {} x communication efficiency {}",
            percent(efficiency.parallel),
            percent(efficiency.load_balance),
            percent(efficiency.communication)
        )?;
        if !self.limited_by.is_empty() {
            writeln!(f, "most is lost by {}", self.limited_by)?;
        }
        if self.timed_ns > 0 {
            writeln!(f, "timed part: {}", time(self.timed_ns))?;
        }
        self.states(f)?;
        self.idleness(f)?;
        self.tasks(f)?;
        self.critical_path(f)?;
        self.syncs(f)?;
        self.messages(f)
    }
}

impl Summary {
    /// Writes the share of each state in the time of each rank.
    fn states(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states = self.ranks.iter().flat_map(|rank| rank.states_ns.keys().map(String::as_str));
        let states: BTreeSet<&str> = states.collect();
        let mut head = vec!["rank"];
        head.extend(&states);
        head.extend(["tasks", "rounds", "in syncs", "bytes sent", "received"]);
        let mut table = Table::new(&head);
        for (number, rank) in self.ranks.iter().enumerate().take(LINES) {
            let mut row = vec![number.to_string()];
            row.extend(states.iter().map(|state| rank.share(rank.states_ns.get(*state))));
            row.extend([rank.tasks, rank.rounds].map(|count| count.to_string()));
            row.push(time(rank.sync_ns));
            row.extend([rank.bytes_sent, rank.bytes_received].map(|bytes| bytes.to_string()));
            table.add(row);
        }
        table.write(f)?;
        more(f, self.ranks.len(), "rank")
    }

    /// Writes the share of each cause of idleness in the time of each rank.
    fn idleness(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = self.ranks.iter().flat_map(|rank| rank.idle_ns.keys().map(String::as_str));
        let causes: BTreeSet<&str> = causes.collect();
        if causes.is_empty() {
            return Ok(());
        }
        let mut head = vec!["idle because"];
        head.extend(&causes);
        let mut table = Table::new(&head);
        for (number, rank) in self.ranks.iter().enumerate().take(LINES) {
            let mut row = vec![format!("rank {number}")];
            row.extend(causes.iter().map(|cause| rank.share(rank.idle_ns.get(*cause))));
            table.add(row);
        }
        table.write(f)
    }

    fn tasks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: f64 = self.tasks.values().map(|tasks| tasks.slices.total_ns as f64).sum();
        let mut table =
            Table::new(&["task type", "tasks", "slices", "total", "share", "median", "p99"]);
        let mut types: Vec<_> = self.tasks.iter().collect();
        types.sort_by_key(|(_, tasks)| std::cmp::Reverse(tasks.slices.total_ns));
        for (label, tasks) in types {
            let Distribution { count, total_ns, median_ns, p99_ns, .. } = tasks.slices;
            table.add(vec![
                label.clone(),
                tasks.tasks.to_string(),
                count.to_string(),
                time(total_ns),
                percent(total_ns as f64 / all.max(1.0)),
                time(median_ns),
                time(p99_ns),
            ]);
        }
        table.write(f)
    }

    fn critical_path(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(CriticalPath { length_ns, span_ns, tasks, messages, most }) = &self.critical_path
        else {
            return Ok(());
        };
        let of_trace = percent(*length_ns as f64 / self.duration_ns.max(1) as f64);
        let (length, span) = (time(*length_ns), time(*span_ns));
        writeln!(f, "\ncritical path: {length}, {of_trace} of the trace, within {span}")?;
        if *length_ns > 0 {
            writeln!(f, "it shortens most with less time in {most}")?;
        }
        let mut table = Table::new(&["on the critical path", "parts", "total", "share"]);
        let mut parts: Vec<_> = tasks.iter().map(|(name, share)| (name.as_str(), share)).collect();
        parts.extend((messages.count > 0).then_some(("messages", messages)));
        parts.sort_by_key(|(_, share)| std::cmp::Reverse(share.total_ns));
        for (name, PathShare { count, total_ns }) in parts {
            let share = percent(*total_ns as f64 / (*length_ns).max(1) as f64);
            table.add(vec![name.to_owned(), count.to_string(), time(*total_ns), share]);
        }
        table.write(f)
    }

    fn syncs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["cost of syncs", "rounds", "total", "median", "p99"]);
        for (mode, costs) in &self.syncs {
            let Distribution { count, total_ns, median_ns, p99_ns, .. } = *costs;
            let times = [total_ns, median_ns, p99_ns].map(time);
            table.add([mode.clone(), count.to_string()].into_iter().chain(times).collect());
        }
        table.write(f)
    }

    fn messages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = &self.messages;
        let Distribution { count, median_ns, p99_ns, .. } = messages.latency;
        if count == 0 {
            writeln!(f, "\nno messages between ranks")?;
            return self.control(f);
        }
        let kinds = match messages.kinds.is_empty() {
            true => String::new(),
            false => format!(" ({})", with_counts(&messages.kinds)),
        };
        let (count, bytes) = (counted(count, "message"), counted(messages.bytes, "byte"));
        let (median, p99) = (time(median_ns), time(p99_ns));
        writeln!(f, "\n{count}{kinds}, {bytes}; latency: median {median}, p99 {p99}")?;
        self.control(f)?;
        let mut table = Table::new(&["from", "to", "messages", "bytes"]);
        for pair in messages.pairs.iter().take(LINES) {
            let numbers = [pair.messages, pair.bytes].map(|number| number.to_string());
            let ranks = [pair.from, pair.to].map(|rank| rank.to_string());
            table.add(ranks.into_iter().chain(numbers).collect());
        }
        table.write(f)?;
        more(f, messages.pairs.len(), "pair")
    }

    /// Writes the numbers of control messages, if the trace has any.
    fn control(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let control = &self.messages.control;
        if control.is_empty() {
            return Ok(());
        }
        let count = counted(control.values().sum::<u64>(), "control message");
        writeln!(f, "{count} ({})", with_counts(control))
    }
}

impl RankSummary {
    /// Formats a part of the time of the rank.
    fn share(&self, part_ns: Option<&u64>) -> String {
        let sum: f64 = self.states_ns.values().map(|&time| time as f64).sum();
        percent(part_ns.map_or(0.0, |&part| part as f64) / sum.max(1.0))
    }
}

/// Formats names, each with a number behind it.
fn with_counts(counts: &BTreeMap<String, u64>) -> String {
    let counts = counts.iter().map(|(name, count)| format!("{name} {count}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// Says how many lines a table lacks.
fn more(f: &mut fmt::Formatter<'_>, length: usize, what: &str) -> fmt::Result {
    match length.checked_sub(LINES) {
        None | Some(0) => Ok(()),
        Some(left) => writeln!(f, "{} more", counted(left as u64, what)),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
