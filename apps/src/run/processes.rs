//! Ranks in several processes. A process takes part in one run.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[cfg(feature = "mpi")]
use ibverbs_sim::Packets;
use ibverbs_sim::Rail;
#[cfg(feature = "mpi")]
use ibverbs_sim::bootstrap::RunSettings;
use ibverbs_sim::bootstrap::{
    Bootstrap, BootstrapError, Connected, PmiBootstrap, PmiLaunch, PmixBootstrap, PmixLaunch,
};
use talpf::{SyncMode, TicketCounts};
use talpf_runtime::Metrics;
#[cfg(feature = "mpi")]
use tampi_shim::mpi::{self, Library, MpiWire};

use super::{
    Communication, Links, Machine, Membership, Observer, Part, RankContext, RankCount, Transport,
    gather, ranks,
};
#[cfg(feature = "mpi")]
use super::{Messages, mpi_member::MpiMember};
use crate::Error;

/// Connection to the other processes of a run.
enum Joined {
    Rail(Arc<dyn Rail>),
    #[cfg(feature = "mpi")]
    Mpi(MpiMember),
}

thread_local! {
    /// Connection from the creation of a machine of processes to its run, on the same thread.
    static JOINED: RefCell<Option<Joined>> = const { RefCell::new(None) };

    /// Rail of a run that is traced, from its end to that of the process: others take its loss for a sign
    /// that this process has written its trace.
    static ENDED: RefCell<Option<Arc<dyn Rail>>> = const { RefCell::new(None) };
}

/// Way in which a process finds the others of its run.
#[derive(Debug)]
pub enum Meeting {
    /// A launcher of ours has started the processes.
    Launched(Membership),
    /// A launcher with PMI has started the processes.
    Pmi {
        /// Place of this process, and its way to the launcher.
        launch: PmiLaunch,
        /// Time in which all processes must have met.
        timeout: Duration,
    },
    /// A launcher with PMIx has started the processes.
    Pmix(PmixLaunch),
    /// The processes were started in another way, and process 0 runs the server.
    Server(Membership),
}

impl Meeting {
    /// Returns the number of this process, and that of all.
    pub fn numbers(&self) -> (u32, u32) {
        match self {
            Self::Launched(member) | Self::Server(member) => (member.process, member.processes),
            Self::Pmi { launch, .. } => (launch.process, launch.processes),
            Self::Pmix(launch) => (launch.process, launch.processes),
        }
    }
}

/// Creates the machine of all processes of a run, which have the same settings. Without a number of
/// workers each process uses its share of the cores of its machine.
///
/// **Errors**: [`Error::OutOfRange`]; [`Error::NotDivided`] if `ranks` is not a multiple of the number
/// of processes; [`Error::Meet`].
pub fn join(
    meeting: Meeting,
    links: &Links,
    settings: &[(&str, &str)],
    ranks: RankCount,
    workers: Option<usize>,
) -> Result<Machine, Error> {
    let (process, processes) = meeting.numbers();
    let size = processes as usize;
    let ranks = ranks.of(size)?;
    let number = ranks.to_string();
    let settings = &[settings, &[("ranks", &*number)]].concat();
    let connected = match meeting {
        Meeting::Launched(member) => member.connect(links, settings),
        Meeting::Pmi { launch, timeout } => {
            connect_by(PmiBootstrap::join(launch, settings, timeout), links)
        }
        Meeting::Pmix(launch) => connect_by(PmixBootstrap::join(launch, settings), links),
        Meeting::Server(member) => member.connect_without_launcher(links, settings),
    }?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let share = (cores / connected.neighbours.max(1) as usize).max(1);
    let machine = Machine::new(ranks, workers.unwrap_or(share))?;
    JOINED.set(Some(Joined::Rail(connected.rail)));
    let (process, connections) = (process as usize, Some(connected.connections));
    Ok(machine.over(Transport::Processes { process, processes: size, connections }))
}

/// Creates the machine of all processes that a rail joins, with `workers` workers in this one. The next run of this
/// thread is over that rail.
///
/// **Errors**: [`Error::OutOfRange`]; [`Error::NotDivided`] if `ranks` is not a multiple of the number of
/// processes.
pub fn on_rail(rail: Arc<dyn Rail>, ranks: RankCount, workers: usize) -> Result<Machine, Error> {
    let (process, processes) = (rail.process() as usize, rail.processes() as usize);
    let machine = Machine::new(ranks.of(processes)?, workers)?;
    JOINED.set(Some(Joined::Rail(rail)));
    Ok(machine.over(Transport::Processes { process, processes, connections: None }))
}

fn connect_by(
    joined: Result<impl Bootstrap, BootstrapError>,
    links: &Links,
) -> Result<Connected, Error> {
    joined.and_then(|mut bootstrap| links.connect(&mut bootstrap)).map_err(Error::Meet)
}

/// Creates the machine of all processes that `mpirun` has started, which have the same settings. Without a
/// number of workers each process uses the cores that it may run on.
///
/// **Errors**: [`Error::Tampi`]; those of [`join`].
#[cfg(feature = "mpi")]
pub fn join_mpi(
    settings: &[(&str, &str)],
    ranks: RankCount,
    workers: Option<usize>,
) -> Result<Machine, Error> {
    let library = Library::initialize().map_err(tampi_shim::Error::from)?;
    let (process, processes) = (library.rank(), library.size() as usize);
    let share = (library.cores() / library.local_size() as usize).max(1);
    let number = ranks.unchecked(processes).to_string();
    let settings = RunSettings::new(&[settings, &[("ranks", &*number)]].concat());
    // Before this process finds its own mistakes: the others would wait for it here.
    let all = library.all_gather(settings.as_bytes()).map_err(tampi_shim::Error::from)?;
    JOINED.set(Some(Joined::Mpi(MpiMember::new(library))));
    for (other, bytes) in (0..).zip(&all) {
        settings.compare(process, other, bytes).map_err(Error::Meet)?;
    }
    let machine = Machine::new(ranks.of(processes)?, workers.unwrap_or(share))?;
    Ok(machine.over(Transport::Mpi { process: process as usize, processes }))
}

/// Returns `true` if a process of the traced run that this thread has ended has left it, too, and so
/// has written its trace if it ever does. That is not known of processes that MPI connects.
pub fn has_left(process: usize) -> bool {
    ENDED.with_borrow(|rail| {
        rail.as_ref().is_some_and(|rail| {
            // Nothing that comes after the end matters, but for losses, which the rail keeps.
            rail.poll(&mut |_| {});
            rail.is_lost(process as u32)
        })
    })
}

/// Runs `program` on the ranks of this process. Returns the parts of the result by rank in the process
/// of rank 0, and the seconds of the slowest rank.
pub(super) fn on_ranks_of_process<F>(
    machine: Machine,
    communication: Communication,
    observer: &Observer,
    program: impl Fn(RankContext) -> F,
) -> Result<Option<ranks::Parts>, Error>
where
    F: Future<Output = Result<Part, Error>> + Send + 'static,
{
    let joined = JOINED.take().ok_or(Error::NotJoined)?;
    let runtime = ranks::runtime(machine, observer)?;
    let parts = match (communication, joined) {
        (Communication::OneSided(protocol), joined) => {
            let config = ranks::talpf_config(machine, runtime)?;
            let main = |ctx: talpf::Context| {
                if observer.recorder.is_some() {
                    // What is recorded is written if a signal ends the run.
                    observer.interrupt.covers(ctx.group());
                }
                let part = program(RankContext::OneSided(ctx.clone(), protocol));
                let observer = observer.clone();
                async move {
                    let part = part.await?;
                    let rank = ctx.rank().0;
                    if let Some(recorder) = &observer.recorder {
                        ranks::mark_timed_part(recorder, rank, &part);
                        // What follows is no part of the program. It begins with a collective call, so
                        // that no rank gathers before all have stopped.
                        ctx.sync(SyncMode::DEFAULT).await?;
                        ctx.stop_trace();
                    }
                    let is_first = machine.ranks_here().start == rank as usize;
                    let metrics = observer.monitor.metrics().filter(|_| is_first);
                    let numbers = numbers(part, metrics.as_ref(), Some(ctx.ticket_counts()));
                    gather::by_puts(&ctx, numbers).await
                }
            };
            let rail = match joined {
                Joined::Rail(rail) => {
                    if observer.recorder.is_some() {
                        ENDED.set(Some(Arc::clone(&rail)));
                    }
                    rail
                }
                #[cfg(feature = "mpi")]
                Joined::Mpi(member) => {
                    let wire = Arc::new(MpiWire::new(member.begin()?));
                    Arc::new(Packets::new(wire)) as Arc<dyn Rail>
                }
            };
            let ranks = config.ranks / rail.processes();
            let parts = talpf::exec_on_rail(rail, talpf::Config { ranks, ..config }, main);
            parts.map(|parts| parts.into_iter().next().flatten())
        }
        (Communication::TwoSided(_), Joined::Rail(_)) => {
            Err(Error::NotTogether { option: "two-sided communication", with: "talpf launch" })
        }
        #[cfg(feature = "mpi")]
        (Communication::TwoSided(waiting), Joined::Mpi(member)) => {
            let config = mpi::Config { runtime: Some(runtime), ..mpi::Config::from_environment()? };
            mpi::run(member.begin()?, config, |world| {
                if observer.recorder.is_some() {
                    observer.interrupt.covers(world.group());
                }
                let messages = Messages::new(world.clone(), waiting);
                let part = program(RankContext::TwoSided(messages));
                let observer = observer.clone();
                async move {
                    let part = part.await?;
                    if let Some(recorder) = &observer.recorder {
                        ranks::mark_timed_part(recorder, world.rank().0, &part);
                    }
                    let numbers = numbers(part, observer.monitor.metrics().as_ref(), None);
                    gather::by_messages(&world, numbers).await
                }
            })
        }
    };
    // The interruption explains more than the errors it causes.
    observer.interrupt.covers_nothing()?;
    Ok(parts?.map(|mut parts| {
        let all = parts.iter_mut().enumerate().map(|(rank, part)| {
            let (seconds, metrics, tickets) = cut(part);
            tickets.into_iter().for_each(|tickets| observer.other_metrics.add_tickets(tickets));
            // Those of this process go on.
            let of_others = metrics.filter(|_| !machine.ranks_here().contains(&rank));
            observer.other_metrics.add(of_others);
            seconds
        });
        let seconds = all.fold(0.0, f64::max);
        (parts, seconds)
    }))
}

/// Converts a part to numbers: those of the result, the metrics of its process, the number of those, the tickets of the
/// rank, the number of their counts, and the seconds.
fn numbers(part: Part, metrics: Option<&Metrics>, tickets: Option<TicketCounts>) -> Vec<f64> {
    let mut numbers = part.result;
    let metrics = metrics.map(Metrics::to_words).unwrap_or_default();
    let tickets = tickets.map(|counts| [counts.given, counts.used, counts.late, counts.unused]);
    for words in [&*metrics, tickets.as_ref().map_or(&[], |tickets| tickets)] {
        numbers.extend(words.iter().copied().map(f64::from_bits));
        numbers.push(words.len() as f64);
    }
    numbers.push((part.ended - part.started).as_secs_f64());
    numbers
}

/// Takes the seconds, the metrics and the tickets off the numbers of a part.
fn cut(part: &mut Vec<f64>) -> (f64, Option<Metrics>, Option<TicketCounts>) {
    let seconds = part.pop().unwrap_or(0.0);
    let mut words = || -> Vec<u64> {
        let count = part.pop().unwrap_or(0.0) as usize;
        let words = part.split_off(part.len().saturating_sub(count));
        words.into_iter().map(f64::to_bits).collect()
    };
    let tickets = words().try_into().ok().map(|[given, used, late, unused]: [u64; 4]| {
        let mut counts = TicketCounts::default();
        (counts.given, counts.used, counts.late, counts.unused) = (given, used, late, unused);
        counts
    });
    (seconds, Metrics::from_words(&words()), tickets)
}
