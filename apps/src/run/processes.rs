//! Ranks in several processes. A process takes part in one run.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread;

use ibverbs_sim::Rail;
use ibverbs_sim::bootstrap::{Connected, PmiBootstrap, PmiLaunch, connect};
#[cfg(feature = "mpi")]
use tampi_shim::mpi::{self, Library, MpiWire};

#[cfg(feature = "mpi")]
use super::Messages;
use super::{
    Communication, Links, Machine, Membership, Observer, Part, RankContext, Transport, gather,
    ranks,
};
use crate::Error;

/// Connection to the other processes of a run.
enum Joined {
    Rail(Arc<dyn Rail>),
    #[cfg(feature = "mpi")]
    Mpi(Library),
}

thread_local! {
    /// Connection from the creation of a machine of processes to its run, on the same thread.
    static JOINED: RefCell<Option<Joined>> = const { RefCell::new(None) };
}

/// Way in which a process finds the others of its run.
#[derive(Clone, Debug)]
pub enum Meeting {
    /// A launcher of ours has started the processes.
    Launched(Membership),
    /// A launcher with PMI has started the processes.
    Pmi(PmiLaunch),
    /// The processes were started in another way, and process 0 runs the server.
    Server(Membership),
}

/// Creates the machine of all processes of a run, which have the same settings. Without a number of
/// workers each process uses its share of the cores of its machine, and without a number of ranks it
/// is one rank.
///
/// **Errors**: [`Error::OutOfRange`]; [`Error::NotDivided`] if `ranks` is not a multiple of the number
/// of processes; [`Error::Meet`].
pub fn join(
    meeting: &Meeting,
    links: Links,
    settings: &[(&str, &str)],
    ranks: Option<usize>,
    workers: Option<usize>,
) -> Result<Machine, Error> {
    let (process, processes) = match meeting {
        Meeting::Launched(member) | Meeting::Server(member) => (member.process, member.processes),
        Meeting::Pmi(launch) => (launch.process, launch.processes),
    };
    let size = processes as usize;
    let ranks = Error::check_range("ranks", ranks.unwrap_or(size), Machine::RANKS)?;
    if !ranks.is_multiple_of(size) {
        return Err(Error::NotDivided { ranks, processes: size });
    }
    let number = ranks.to_string();
    let settings = &[settings, &[("ranks", &*number)]].concat();
    let connected = match meeting {
        Meeting::Launched(member) => member.connect(links, settings),
        Meeting::Pmi(launch) => connect_by_pmi(*launch, links, settings),
        Meeting::Server(member) => member.connect_without_launcher(links, settings),
    }?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let share = (cores / connected.neighbours.max(1) as usize).max(1);
    let machine = Machine::new(ranks, workers.unwrap_or(share))?;
    JOINED.set(Some(Joined::Rail(connected.rail)));
    let (process, connections) = (process as usize, connected.connections);
    Ok(machine.over(Transport::Processes { process, connections }))
}

fn connect_by_pmi(
    launch: PmiLaunch,
    links: Links,
    settings: &[(&str, &str)],
) -> Result<Connected, Error> {
    PmiBootstrap::join(launch, settings, Membership::TIMEOUT)
        .and_then(|mut bootstrap| connect(&mut bootstrap, links.fabric, links.peer_timeout))
        .map_err(Error::Meet)
}

/// Creates the machine of all processes that `mpirun` has started. Without a number of workers each
/// process uses the cores that it may run on.
///
/// **Errors**: [`Error::Tampi`]; [`Error::OutOfRange`] if `ranks` is not the number of processes.
#[cfg(feature = "mpi")]
pub fn join_mpi(ranks: Option<usize>, workers: Option<usize>) -> Result<Machine, Error> {
    let library = Library::initialize().map_err(tampi_shim::Error::from)?;
    let (rank, size) = (library.rank() as usize, library.size() as usize);
    let share = (library.cores() / library.local_size() as usize).max(1);
    JOINED.set(Some(Joined::Mpi(library)));
    Error::check_range("ranks", ranks.unwrap_or(size), size..=size)?;
    Ok(Machine::new(size, workers.unwrap_or(share))?.over(Transport::Mpi { rank }))
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
                let part = program(RankContext::OneSided(ctx.clone(), protocol));
                async move { gather::by_puts(&ctx, numbers(part.await?)).await }
            };
            match joined {
                Joined::Rail(rail) => {
                    let ranks = config.ranks / rail.processes();
                    let parts = talpf::exec_on_rail(rail, talpf::Config { ranks, ..config }, main);
                    parts.map(|parts| parts.into_iter().next().flatten())
                }
                #[cfg(feature = "mpi")]
                Joined::Mpi(library) => talpf::hook(Arc::new(MpiWire::new(library)), config, main),
            }
        }
        (Communication::TwoSided(_), Joined::Rail(_)) => {
            Err(Error::NotTogether { option: "two-sided communication", with: "talpf launch" })
        }
        #[cfg(feature = "mpi")]
        (Communication::TwoSided(waiting), Joined::Mpi(library)) => {
            let config = mpi::Config { runtime: Some(runtime), ..mpi::Config::from_environment()? };
            mpi::run(library, config, |world| {
                let messages = Messages::new(world.clone(), waiting);
                let part = program(RankContext::TwoSided(messages));
                async move { gather::by_messages(&world, numbers(part.await?)).await }
            })
        }
    }?;
    Ok(parts.map(|mut parts| {
        let seconds = parts.iter_mut().filter_map(Vec::pop).fold(0.0, f64::max);
        (parts, seconds)
    }))
}

/// Converts a part to numbers: those of the result, and its seconds.
fn numbers(part: Part) -> Vec<f64> {
    let mut numbers = part.result;
    numbers.push((part.ended - part.started).as_secs_f64());
    numbers
}
