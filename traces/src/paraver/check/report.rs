//! Report of the linter.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::rule::{Rule, Severity};
use crate::counted;

/// Number of findings kept for each rule; further ones are only counted.
const KEPT_PER_RULE: u64 = 20;

/// Breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Rule that is broken.
    pub rule: Rule,
    /// Path of the file, one of the three of the trace.
    pub file: Arc<Path>,
    /// Number of the line, from 1.
    pub line: u64,
    /// Description, with the value and its limit.
    pub text: String,
}

/// Sizes of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceCounts {
    /// Lines that are states, events or communications.
    pub records: u64,
    /// State lines.
    pub states: u64,
    /// Event lines.
    pub events: u64,
    /// Types with a value on all event lines.
    pub event_values: u64,
    /// Communication lines.
    pub communications: u64,
    /// Communication lines of control messages, among all.
    pub control: u64,
    /// Paraver's tasks of all applications: the ranks.
    pub ranks: u64,
    /// Threads of all tasks.
    pub threads: u64,
    /// Nodes; 0 if the trace declares none.
    pub nodes: u64,
    /// Cpus of all nodes.
    pub cpus: u64,
    /// Duration in the header, in the header's unit.
    pub duration: u64,
    /// The header's unit: `ns`, `us` or `ms`.
    pub unit: &'static str,
}

/// Result of a check.
#[derive(Clone, Debug, Default)]
pub struct Report {
    findings: Vec<Finding>,
    breaches: BTreeMap<Rule, u64>,
    pub(super) counts: TraceCounts,
}

impl Report {
    /// Returns `true` if the report has no errors and no warnings; notes are ignored.
    pub fn is_clean(&self) -> bool {
        self.errors() == 0 && self.warnings() == 0
    }

    /// Returns the findings, at most 20 for each rule, in the order of the files.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the number of breaches of `rule`, including those that are not kept.
    pub fn breaches(&self, rule: Rule) -> u64 {
        self.breaches.get(&rule).copied().unwrap_or_default()
    }

    /// Returns the number of breaches that Paraver refuses or shows as nonsense.
    pub fn errors(&self) -> u64 {
        self.total(Severity::Error)
    }

    /// Returns the number of breaches that make Paraver show less than the trace has, or something
    /// else.
    pub fn warnings(&self) -> u64 {
        self.total(Severity::Warning)
    }

    /// Returns the sizes of the trace.
    pub fn counts(&self) -> &TraceCounts {
        &self.counts
    }

    fn total(&self, severity: Severity) -> u64 {
        let breaches = self.breaches.iter().filter(|(rule, _)| rule.severity() == severity);
        breaches.map(|(_, count)| count).sum()
    }
}

/// Collector of the findings of one file.
#[derive(Debug)]
pub(super) struct Log<'a> {
    pub(super) report: &'a mut Report,
    file: Arc<Path>,
}

impl<'a> Log<'a> {
    pub(super) fn new(report: &'a mut Report, file: &Path) -> Self {
        Self { report, file: file.into() }
    }

    pub(super) fn add(&mut self, rule: Rule, line: u64, text: impl fmt::Display) {
        let breaches = self.report.breaches.entry(rule).or_default();
        *breaches += 1;
        if *breaches <= KEPT_PER_RULE {
            let (file, text) = (Arc::clone(&self.file), text.to_string());
            self.report.findings.push(Finding { rule, file, line, text });
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, file, line, text } = self;
        write!(f, "{}:{line}: {}: {text} [{rule:?}]", file.display(), rule.severity())
    }
}

impl fmt::Display for TraceCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}, {} with {}, {}{}), {}, {}, {}, {}, {} {}",
            counted(self.records, "record"),
            counted(self.states, "state"),
            counted(self.events, "event"),
            counted(self.event_values, "value"),
            counted(self.communications, "communication"),
            Control(self.control),
            counted(self.ranks, "rank"),
            counted(self.threads, "thread"),
            counted(self.nodes, "node"),
            counted(self.cpus, "cpu"),
            self.duration,
            self.unit,
        )
    }
}

/// Number of control messages, behind that of communications, if there are any.
struct Control(u64);

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, " with {}", counted(count, "control message")),
        }
    }
}

/// A line for each finding kept and each rule with more, then a summary.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        for (rule, count) in self.breaches.iter().filter(|(_, count)| **count > KEPT_PER_RULE) {
            writeln!(f, "{}: {} more [{rule:?}]", rule.severity(), count - KEPT_PER_RULE)?;
        }
        let errors = counted(self.errors(), "error");
        let warnings = counted(self.warnings(), "warning");
        write!(f, "{errors}, {warnings}")?;
        // A view has no records to count.
        if self.counts == TraceCounts::default() { Ok(()) } else { write!(f, "; {}", self.counts) }
    }
}
