//! Instruction counts from callgrind, which runs this program in a process of its own.
//!
//! The process counts between [`marker::begin`] and [`marker::end`], any number of times, and prints the number of
//! units of each count. Callgrind leaves one file per count, in the same order.

pub(crate) mod marker;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use crate::error::Error;
use crate::peer;

/// Time limit of the process.
const LIMIT: Duration = Duration::from_secs(600);

/// The counts of a process that has ended, in a folder that is deleted with this.
pub(crate) struct Counts {
    folder: TempDir,
    /// Units of each count.
    units: Vec<f64>,
}

impl Counts {
    /// Runs this program with these arguments.
    ///
    /// **Errors**: valgrind not installed; those of the process.
    pub(crate) fn of(arguments: &[&str]) -> Result<Self, Error> {
        let refused = |reason| Error::System { doing: "counting instructions", reason };
        let folder = tempfile::tempdir().map_err(refused)?;
        let out = folder.path().join("out");
        let mut command = peer::limited("valgrind", LIMIT);
        command.args(["--tool=callgrind", "--quiet"]).args(marker::OPTIONS);
        command.arg(format!("--callgrind-out-file={}", out.display()));
        command.arg(std::env::current_exe().map_err(refused)?).args(arguments);
        let output = peer::run(&mut command)?;
        let units = output.values::<f64>()?.into_iter().map(|(_, units)| units).collect();
        Ok(Counts { folder, units })
    }

    /// Returns the number of counts.
    pub(crate) fn len(&self) -> usize {
        self.units.len()
    }

    /// Returns the instructions per unit of a count.
    ///
    /// **Errors**: an output of callgrind without it.
    pub(crate) fn total(&self, count: usize) -> Result<f64, Error> {
        let text = self.text(count)?;
        let total =
            text.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
        let total: f64 = total.ok_or_else(|| garbled("no totals"))?;
        Ok(total / self.units[count])
    }

    /// Returns the instructions per unit of each function that a count has, without those it calls.
    ///
    /// **Errors**: an output of callgrind that makes no sense.
    pub(crate) fn functions(&self, count: usize) -> Result<HashMap<String, f64>, Error> {
        let mut functions = costs_of(&self.text(count)?)?;
        functions.values_mut().for_each(|cost| *cost /= self.units[count]);
        Ok(functions)
    }

    fn text(&self, count: usize) -> Result<String, Error> {
        let path: PathBuf = self.folder.path().join(format!("out.{}", count + 1));
        let doing = "reading the output of callgrind";
        fs::read_to_string(path).map_err(|reason| Error::System { doing, reason })
    }
}

/// Returns the cost of each function of an output, without those that it calls.
///
/// A line `fn=(ID) NAME` begins a function, with its name the first time. A line with a position and a number is a cost
/// of it, unless it follows one with `calls=`: then it is that of the function that was called.
fn costs_of(text: &str) -> Result<HashMap<String, f64>, Error> {
    let (mut names, mut costs) = (HashMap::new(), HashMap::<String, f64>::new());
    let (mut function, mut is_call) = (None, false);
    for line in text.lines() {
        if let Some((key, name)) = line.split_once('=') {
            is_call = key == "calls";
            if matches!(key, "fn" | "cfn") {
                let (id, name) =
                    name.split_once(' ').map_or((name, None), |(id, name)| (id, Some(name)));
                names.extend(name.map(|name| (id, name)));
                if key == "fn" {
                    function = names.get(id).copied();
                }
            }
            continue;
        }
        let is_position =
            line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first));
        if !is_position || std::mem::take(&mut is_call) {
            continue;
        }
        let cost: Option<f64> = line.split(' ').nth(1).and_then(|cost| cost.parse().ok());
        let (Some(function), Some(cost)) = (function, cost) else { return Err(garbled(line)) };
        *costs.entry(function.to_owned()).or_default() += cost;
    }
    Ok(costs)
}

fn garbled(line: &str) -> Error {
    Error::Garbled { command: "callgrind".to_owned(), line: line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_calls_are_not_those_of_the_caller() {
        let text = "events: Ir\nfl=(1) a.rs\nfn=(1) a::b\n10 3\n+2 4\ncfn=(2) c\ncalls=2 5\n* 50\n-1 1\n\n\
                    fn=(2)\n7 50\n\ntotals: 58\n";
        let costs = costs_of(text).unwrap();
        assert_eq!(costs, HashMap::from([("a::b".to_owned(), 8.0), ("c".to_owned(), 50.0)]));
        assert!(costs_of("10 3\n").is_err(), "of no function");
    }
}
