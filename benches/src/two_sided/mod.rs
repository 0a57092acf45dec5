//! Cost of two-sided messages, embedded and over the MPIs of this machine.
//!
//! All contenders are sampled in every round, one after the other. Embedded ranks are tasks of this
//! process on one worker per core; ranks of an MPI are processes, each on a core of its own while
//! there are enough cores.

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
use crate::core_to_core;
use crate::error::Error;
use crate::measure::Report;
use crate::print_line::print_line;

/// Selection of measurements.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `true` if MPIs are measured too.
    pub peers: bool,
    /// Few and short rounds, for a first impression.
    pub quick: bool,
}

/// Returns the baseline of our times over an MPI: the ping-pong of that MPI between two ranks.
#[cfg(feature = "mpi")]
fn plain(theirs: &[Value]) -> Option<f64> {
    theirs.iter().find(|(figure, _)| figure == "latency_8B_ns").map(|(_, value)| *value)
}

/// Numbers of ranks for barriers and reductions.
const RANKS: [u32; 3] = [2, 4, 8];
/// Rounds in which MPIs have more ranks than cores; few, since the ranks may spin and take the
/// cores from each other.
const OVERSUBSCRIBED_ROUNDS: usize = 3;

/// Measures all figures.
///
/// **Errors**: those of the embedded ranks. An MPI that is not installed, or fails, is reported and
/// left out.
pub fn run(options: &Options) -> Result<Report, Error> {
    let (rounds, budget) = match options.quick {
        true => (3, Duration::from_millis(2)),
        false => (9, Duration::from_millis(10)),
    };
    let cores = cores();
    print_line(format_args!(
        "# two-sided: {}, {}, idle policy {}, link inproc, no randomness, median \
         [min .. max] of {rounds} rounds; MPI ranks pinned up to {cores}, then not, in \
         {OVERSUBSCRIBED_ROUNDS} rounds",
        conditions::machine(),
        counted(cores, "worker"),
        conditions::runtime(cores)?.idle,
    ));
    print_line(format_args!(
        "# embedded: {}; measured: {}",
        Protocols::measured()?,
        Costs::measured()
    ));
    let mut peers = if options.peers { compile() } else { Vec::new() };
    if options.peers && !cfg!(feature = "mpi") {
        print_line(format_args!(
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
        lines.push(core_to_core::sample());
        record(OURS, embedded::sample(budget)?);
        for (protocol, values) in embedded::sample_protocols(budget)? {
            record(protocol, values);
        }
        record("memcpy", memcpy::sample(budget));
        if cores > 1 {
            record("memcpy_alternating", memcpy::sample_alternating(budget));
        }
        for peer in &mut peers {
            let is_oversubscribed = |ranks: u32| ranks as usize > cores;
            for ranks in RANKS
                .into_iter()
                .filter(|&n| round < OVERSUBSCRIBED_ROUNDS || !is_oversubscribed(n))
            {
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
    report.add(core_to_core::NAME, "ns", lines);
    contest.report(&mut report);
    Ok(report)
}

/// MPI that is measured until it fails.
struct Peer {
    mpi: Mpi,
    /// Names of the measurements that failed.
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
            print_line(format_args!("# {}, {what}: {reason}", self.mpi.name()));
            self.failed.push(what.to_owned());
            Vec::new()
        })
    }

    /// Measures our ranks over this MPI.
    #[cfg(feature = "mpi")]
    fn sample_ours(&mut self, cores: usize, budget: Duration) -> Vec<Value> {
        self.sample("ours", |mpi| mpi.sample_ours(cores, budget))
    }

    /// Measures the MPI's own ping-pong at `MPI_THREAD_MULTIPLE`, the thread level of our ranks.
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
                print_line(format_args!("# {}: {version}", flavour.name));
                peers.push(Peer { mpi, failed: Vec::new() });
            }
            Err(error) => print_line(format_args!("# {}: missing, {error}", flavour.name)),
        }
    }
    peers
}
