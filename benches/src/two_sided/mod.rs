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

#[cfg(feature = "mpi")]
pub use self::over_mpi::rank as mpi_rank;

use self::mpi::{FLAVOURS, Mpi};
use self::sizes::Value;
use crate::conditions;
use crate::contest::{Contest, OURS};
use crate::error::Error;
use crate::line;
use crate::measure::Report;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether MPIs are measured too.
    pub peers: bool,
    /// Few and short rounds, for a first impression.
    pub quick: bool,
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
    println!(
        "# two-sided: {}, {cores} workers, idle policy {}, link inproc, no randomness, median \
         [min .. max] of {rounds} rounds; MPI ranks pinned up to {cores}, then not, in \
         {CROWDED_ROUNDS} rounds",
        conditions::machine(),
        conditions::runtime(cores)?.idle,
    );
    let mut peers = if options.peers { compile() } else { Vec::new() };
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
        for peer in &mut peers {
            let is_crowded = |ranks: u32| ranks as usize > cores;
            for ranks in RANKS.into_iter().filter(|&n| round < CROWDED_ROUNDS || !is_crowded(n)) {
                let theirs =
                    peer.sample(&format!("{ranks} ranks"), |mpi| mpi.sample(ranks, cores, budget));
                record(peer.mpi.name(), theirs);
            }
            #[cfg(feature = "mpi")]
            {
                let (ours, plain) = peer.sample_ours(cores, budget);
                record(OURS, ours);
                record(peer.mpi.name(), plain);
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
            println!("# {}, {what}: {reason}", self.mpi.name());
            self.failed.push(what.to_owned());
            Vec::new()
        })
    }

    /// Times of our ranks over this MPI, and for each of them the time of its plain ping-pong.
    #[cfg(feature = "mpi")]
    fn sample_ours(&mut self, cores: usize, budget: Duration) -> (Vec<Value>, Vec<Value>) {
        let plain = self.sample("2 ranks", |mpi| mpi.sample(2, cores, budget));
        let plain = plain.into_iter().find(|(figure, _)| figure == "latency_8B_ns");
        let mut ours = self.sample("ours", |mpi| mpi.sample_ours(cores, budget));
        for (figure, _) in &mut ours {
            *figure = format!("over_{}_{figure}", self.mpi.name());
        }
        let theirs =
            ours.iter().filter_map(|(figure, _)| Some((figure.clone(), plain.as_ref()?.1)));
        let theirs = theirs.collect();
        (ours, theirs)
    }
}

fn compile() -> Vec<Peer> {
    let mut peers = Vec::new();
    for flavour in FLAVOURS {
        let mpi = Mpi::compile(flavour).and_then(|mpi| Ok((mpi.version()?, mpi)));
        match mpi {
            Ok((version, mpi)) => {
                println!("# {}: {version}", flavour.name);
                peers.push(Peer { mpi, failed: Vec::new() });
            }
            Err(error) => println!("# {}: missing, {error}", flavour.name),
        }
    }
    peers
}
