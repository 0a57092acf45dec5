//! Ranks within one process, or in processes of a run, which are threads here and joined by rails.

use std::future::Future;
use std::io::Error as IoError;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use ibverbs_sim::{OfiChoice, OfiProviders, OfiRail, Rail, ShmConfig, ShmRail};
use talpf::{Config, Context, exec, exec_on_rail};

use super::episode_error::EpisodeError;
use super::rng::Rng;

/// Connections between the ranks of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fabric {
    /// Connections of ranks of one process.
    InProcess,
    /// Shared memory between processes.
    Shm,
    /// A network of libfabric between processes.
    Ofi,
}

impl Fabric {
    /// Draws the number of processes of so many ranks: each process has as many.
    pub(super) fn processes(self, rng: &mut Rng, ranks: usize) -> usize {
        let divides = |processes: &usize| ranks.is_multiple_of(*processes);
        match self {
            Self::InProcess => 1,
            _ if ranks == 1 => 1,
            _ => rng.pick(&Vec::from_iter((2..=ranks).filter(divides))),
        }
    }

    /// Runs `main` on the ranks of a configuration, in so many processes. Returns what each rank returned.
    ///
    /// **Errors**: those of all processes that have failed.
    pub(super) fn exec<R, F>(
        self,
        processes: usize,
        config: Config,
        main: impl Fn(Context) -> F + Clone + Send,
    ) -> Result<Vec<R>, EpisodeError>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, EpisodeError>> + Send + 'static,
    {
        let Some(rails) = self.rails(processes as u32)? else { return exec(config, main) };
        let config = Config { ranks: config.ranks / processes as u32, ..config };
        let ended = thread::scope(|scope| {
            let start = |rail| {
                let (config, main) = (config.clone(), main.clone());
                scope.spawn(move || exec_on_rail(rail, config, main))
            };
            let processes = Vec::from_iter(rails.into_iter().map(start));
            Vec::from_iter(processes.into_iter().map(|process| process.join()))
        });
        let (mut results, mut errors) = (Vec::new(), Vec::new());
        for (process, ended) in ended.into_iter().enumerate() {
            match ended {
                Ok(Ok(of_ranks)) => results.extend(of_ranks),
                Ok(Err(error)) => errors.push(format!("process {process}: {error}")),
                // No planned failure is a panic of a process.
                Err(panic) => resume_unwind(panic),
            }
        }
        if errors.is_empty() { Ok(results) } else { Err(EpisodeError(errors.join("; "))) }
    }

    /// Returns the rail of each process; `None` within one process.
    fn rails(self, processes: u32) -> Result<Option<Vec<Arc<dyn Rail>>>, EpisodeError> {
        match self {
            Self::InProcess => Ok(None),
            Self::Shm => {
                let rails = ShmRail::mesh(processes, &ShmConfig::default());
                Ok(Some(shared(rails.map_err(|error| EpisodeError(error.to_string()))?)))
            }
            Self::Ofi => {
                let rails = OfiRail::mesh(processes, &OfiChoice::default());
                Ok(Some(shared(rails.map_err(|error| EpisodeError(error.to_string()))?)))
            }
        }
    }
}

fn shared<R: Rail>(rails: Vec<R>) -> Vec<Arc<dyn Rail>> {
    rails.into_iter().map(|rail| Arc::new(rail) as _).collect()
}

/// Checks that programs can be joined by libfabric.
///
/// **Errors**: it is not installed, or has no provider that is used.
pub(super) fn find_libfabric() -> Result<(), IoError> {
    let found = OfiProviders::find().map_err(IoError::other)?;
    match found.best() {
        Some(_) => Ok(()),
        None => Err(IoError::other("libfabric has no provider that is used")),
    }
}
