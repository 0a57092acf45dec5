//! Ranks as processes that `mpirun` has started. MPI is initialised once per process, so a process
//! takes part in one run.

use std::cell::RefCell;
use std::sync::Arc;

use tampi_shim::mpi::{self, Library, MpiWire};

use super::{
    Communication, Machine, Messages, Observer, Part, RankContext, Transport, gather, ranks,
};
use crate::Error;

thread_local! {
    /// MPI library, from the creation of a machine of processes to its run, on the same thread.
    static JOINED: RefCell<Option<Library>> = const { RefCell::new(None) };
}

/// Creates the machine of all processes. Without a number of workers each process uses the cores
/// that it may run on.
///
/// **Errors**: [`Error::Tampi`]; [`Error::OutOfRange`] if `ranks` is not the number of processes.
pub fn join(ranks: Option<usize>, workers: Option<usize>) -> Result<Machine, Error> {
    let library = Library::initialize().map_err(tampi_shim::Error::from)?;
    let (rank, size) = (library.rank() as usize, library.size() as usize);
    let share = (library.cores() / library.local_size() as usize).max(1);
    JOINED.set(Some(library));
    Error::check_range("ranks", ranks.unwrap_or(size), size..=size)?;
    Ok(Machine::new(size, workers.unwrap_or(share))?.over(Transport::Mpi { rank }))
}

/// Runs `program` as the rank of this process. Returns the parts of the result by rank at rank 0,
/// and the seconds of the slowest rank.
pub(super) fn on_this_rank<F>(
    machine: Machine,
    communication: Communication,
    observer: &Observer,
    program: impl Fn(RankContext) -> F,
) -> Result<Option<ranks::Parts>, Error>
where
    F: Future<Output = Result<Part, Error>> + Send + 'static,
{
    let library = JOINED.take().ok_or(Error::NotJoined)?;
    let runtime = ranks::runtime(machine, observer)?;
    let parts = match communication {
        Communication::OneSided(protocol) => {
            let config = ranks::talpf_config(machine, runtime)?;
            talpf::hook(Arc::new(MpiWire::new(library)), config, |ctx| {
                let part = program(RankContext::OneSided(ctx.clone(), protocol));
                async move { gather::by_puts(&ctx, numbers(part.await?)).await }
            })
        }
        Communication::TwoSided(waiting) => {
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
