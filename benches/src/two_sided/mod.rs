//! What do two-sided messages cost, embedded and over the MPIs of this machine?
//!
//! All are sampled in every round, one after the other. Embedded ranks are tasks of this process
//! on a worker for every core; those of an MPI are processes, each on a core of its own while there
//! are enough.

mod collectives;
mod embedded;
mod memcpy;
mod mpi;
#[cfg(feature = "mpi")]
mod over_mpi;
mod ranks;
mod repeat;
mod sizes;
mod tasks;

use std::time::Duration;

use talpf_runtime::cores;
use talpf_traces::counted;
use tampi_shim::{Costs, Protocols};

#[cfg(feature = "mpi")]
pub use self::over_mpi::rank as mpi_rank;

use self::mpi::{FLAVOURS, Mpi};
use self::sizes::Value;
use crate::conditions;
use crate::contest::{Contest, OURS};
use crate::error::Error;
use crate::line;
use crate::measure::Report;
use crate::say::say;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether MPIs are measured too.
    pub peers: bool,
    /// Few and short rounds, for a first impression.
    pub quick: bool,
}

/// What our times over an MPI are compared with: the ping-pong of that MPI between two ranks.
#[cfg(feature = "mpi")]
fn plain(theirs: &[Value]) -> Option<f64> {
    theirs.iter().find(|(figure, _)| figure == "latency_8B_ns").map(|(_, value)| *value)
}

/// Ranks of barriers and reductions.
const RANKS: [u32; 3] = [2, 4, 8];
/// Rounds in which MPIs have more ranks than cores; they may spin for each other's cores.
const CROWDED_ROUNDS: usize = 3;

/// Measures everything.
///
/// **Errors**: those of the embedded ranks. An MPI that is not installed, or fails, is reported and
/// left out.
pub fn run(options: &Options) -> Result<Report, Error> {
    let (rounds, budget) = match options.quick {
        true => (3, Duration::from_millis(2)),
        false => (9, Duration::from_millis(10)),
    };
    let cores = cores();
    say(format_args!(
        "# two-sided: {}, {}, idle policy {}, link inproc, no randomness, median \
         [min .. max] of {rounds} rounds; MPI ranks pinned up to {cores}, then not, in \
         {CROWDED_ROUNDS} rounds",
        conditions::machine(),
        counted(cores, "worker"),
        conditions::runtime(cores)?.idle,
    ));
    say(format_args!("# embedded: {}; measured: {}", Protocols::measured()?, Costs::measured()));
    let mut peers = if options.peers { compile() } else { Vec::new() };
    if options.peers && !cfg!(feature = "mpi") {
        say(format_args!(
            "# ours over an MPI: not measured, build with --features mpi and MPICC=mpicc.mpich or \
             MPICC=mpicc.openmpi"
        ));
    }
    let mut contest = Contest::default();
    let mut lines = Vec::new();
    for round in 0..rounds {
        let mut record = |contender, values: Vec<Value>| {
            for (figure, value) in values {
                contest.record(round, contender, &format!("two_sided.{figure}"), value);
            }
        };
        lines.push(line::sample());
        record(OURS, embedded::sample(budget)?);
        for (protocol, values) in embedded::sample_protocols(budget)? {
            record(protocol, values);
        }
        record("memcpy", memcpy::sample(budget));
        if cores > 1 {
            record("memcpy_by_turns", memcpy::sample_by_turns(budget));
        }
        for peer in &mut peers {
            let is_crowded = |ranks: u32| ranks as usize > cores;
            for ranks in RANKS.into_iter().filter(|&n| round < CROWDED_ROUNDS || !is_crowded(n)) {
                let theirs =
                    peer.sample(&format!("{ranks} ranks"), |mpi| mpi.sample(ranks, cores, budget));
                #[cfg(feature = "mpi")]
                if let Some(plain) = plain(&theirs) {
                    let ours = peer.sample_ours(cores, budget);
                    let mut plains = vec![(peer.mpi.name(), plain)];
                    plains.extend(peer.sample_plain_multiple(cores, budget));
                    for (figure, ours) in ours {
                        let figure = format!("over_{}_{figure}", peer.mpi.name());
                        record(OURS, vec![(figure.clone(), ours)]);
                        for &(name, plain) in &plains {
                            record(name, vec![(figure.clone(), plain)]);
                        }
                    }
                }
                record(peer.mpi.name(), theirs);
            }
        }
    }
    let mut report = Report::new("");
    report.add(line::NAME, "ns", lines);
    contest.report(&mut report);
    Ok(report)
}

/// An MPI that is measured for as long as it does not fail.
struct Peer {
    mpi: Mpi,
    /// What it failed in.
    failed: Vec<String>,
}

impl Peer {
    fn sample(
        &mut self,
        what: &str,
        sample: impl FnOnce(&Mpi) -> Result<Vec<Value>, Error>,
    ) -> Vec<Value> {
        if self.failed.iter().any(|failed| failed == what) {
            return Vec::new();
        }
        sample(&self.mpi).unwrap_or_else(|error| {
            let error = error.to_string();
            let reason = error.lines().next().unwrap_or_default();
            say(format_args!("# {}, {what}: {reason}", self.mpi.name()));
            self.failed.push(what.to_owned());
            Vec::new()
        })
    }

    /// Times of our ranks over this MPI.
    #[cfg(feature = "mpi")]
    fn sample_ours(&mut self, cores: usize, budget: Duration) -> Vec<Value> {
        self.sample("ours", |mpi| mpi.sample_ours(cores, budget))
    }

    /// The ping-pong where all threads may call MPI, as ours ask for.
    #[cfg(feature = "mpi")]
    fn sample_plain_multiple(
        &mut self,
        cores: usize,
        budget: Duration,
    ) -> Option<(&'static str, f64)> {
        let theirs = self.sample("multiple", |mpi| mpi.sample_multiple(cores, budget));
        plain(&theirs).map(|plain| (self.mpi.name_of_multiple(), plain))
    }
}

fn compile() -> Vec<Peer> {
    let mut peers = Vec::new();
    for flavour in FLAVOURS {
        let mpi = Mpi::compile(flavour).and_then(|mpi| Ok((mpi.version()?, mpi)));
        match mpi {
            Ok((version, mpi)) => {
                say(format_args!("# {}: {version}", flavour.name));
                peers.push(Peer { mpi, failed: Vec::new() });
            }
            Err(error) => say(format_args!("# {}: missing, {error}", flavour.name)),
        }
    }
    peers
}
