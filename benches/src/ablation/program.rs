//! Programs that are measured without one policy after another, each in a process of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use talpf::Settings;

use crate::error::Error;

/// Program with the figures that it measures.
pub(super) struct Program {
    /// Arguments of this command.
    arguments: &'static [&'static str],
    pub(super) figures: &'static [Figure],
}

/// Name of a figure and its unit.
pub(super) struct Figure(pub(super) &'static str, pub(super) &'static str);

macro_rules! metg {
    ($pattern:literal) => {
        Program {
            arguments: &[
                "metg",
                "--quick",
                "--kernel",
                "compute",
                "--width",
                "32",
                "--pattern",
                $pattern,
            ],
            figures: &[
                Figure(concat!("metg.", $pattern, "_32_us"), "us"),
                Figure(concat!("metg.", $pattern, "_32_us.replay"), "us"),
            ],
        }
    };
}

macro_rules! app {
    ($name:literal) => {
        Program {
            arguments: &["ablation-sample", $name],
            figures: &[
                Figure(concat!("app.", $name, "_ms"), "ms"),
                Figure(concat!("app.", $name, "_replay_ms"), "ms"),
            ],
        }
    };
}

/// Programs in the order of the table.
pub(super) const PROGRAMS: &[Program] = &[
    Program {
        arguments: &["micro", "runtime.chain"],
        figures: &[Figure("runtime.chain_ns", "ns")],
    },
    Program {
        arguments: &["micro", "runtime.stencil"],
        figures: &[Figure("runtime.stencil_ns", "ns"), Figure("runtime.stencil_replay_ns", "ns")],
    },
    Program { arguments: &["micro", "put.latency"], figures: &[Figure("put.latency_8B_ns", "ns")] },
    Program { arguments: &["micro", "put.rate_8B"], figures: &[Figure("put.rate_8B_mops", "M/s")] },
    Program {
        arguments: &["micro", "superstep.puts"],
        figures: &[Figure("superstep.puts_1000_us", "us")],
    },
    Program {
        arguments: &["two-sided", "--without-peers", "--quick"],
        figures: &[
            Figure("two_sided.latency_8B_ns", "ns"),
            Figure("two_sided.rate_8B_mops", "M/s"),
            Figure("two_sided.handover_8B_ns", "ns"),
            Figure("two_sided.tasks_8B_ns", "ns"),
            Figure("two_sided.replayed_8B_ns", "ns"),
        ],
    },
    metg!("trivial"),
    metg!("no_comm"),
    metg!("stencil_1d"),
    metg!("stencil_1d_periodic"),
    metg!("dom"),
    metg!("tree"),
    metg!("fft"),
    metg!("all_to_all"),
    metg!("nearest"),
    metg!("spread"),
    metg!("random_nearest"),
    app!("jacobi_512"),
    app!("jacobi_1024"),
    app!("jacobi_4096"),
    app!("gauss_seidel_512"),
    app!("nbody_2048"),
];

impl Program {
    /// Returns `true` if a figure of the program has a name that begins with one of `only`.
    pub(super) fn is_requested(&self, only: &[String]) -> bool {
        let begins = |figure: &Figure| only.iter().any(|only| figure.0.starts_with(only));
        only.is_empty() || self.figures.iter().any(begins)
    }

    /// Runs the program in a process without a policy, or with all of them, and returns the
    /// figures that it writes to `path`.
    pub(super) fn sample(&self, without: Option<&str>, path: &Path) -> Result<Value, Error> {
        let refused = |doing| move |reason| Error::System { doing, reason };
        let own = std::env::current_exe().map_err(refused("finds this command"))?;
        let mut command = Command::new(own);
        command.args(self.arguments).arg("--json").arg(path);
        command.env(Settings::WITHOUT, without.unwrap_or_default());
        let output = command.output().map_err(refused("starts a sample"))?;
        if !output.status.success() {
            return Err(Error::Failed {
                command: self.arguments.join(" "),
                status: output.status,
                output: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        let text = fs::read_to_string(path).map_err(refused("reads the figures of a sample"))?;
        serde_json::from_str(&text)
            .map_err(|_| Error::Garbled { command: self.arguments.join(" "), line: text })
    }
}

impl Figure {
    /// Returns the median of the figure among those of a sample, if it was measured.
    pub(super) fn of(&self, figures: &Value) -> Option<f64> {
        figures[self.0]["median"].as_f64()
    }

    /// Returns the relative cost of two values: of times, or of the inverse of rates.
    pub(super) fn cost(&self, without: f64, with: f64) -> f64 {
        if self.1 == "M/s" { with / without } else { without / with }
    }
}
