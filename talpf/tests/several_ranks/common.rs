//! Runs a program on several ranks in each of several processes, which share memory.

use std::future::Future;
use std::sync::Arc;
use std::thread;

use ibverbs_sim::{ShmConfig, ShmRail};
use talpf::{Config, Context, Error, exec_on_rail};

pub(crate) use crate::in_one_process::*;
pub(crate) use crate::outcomes::{COPIED, run, says};

/// Returns the result of each rank. There are two ranks in each process, or three, as their number
/// divides, or else one.
pub(crate) fn run_all<R, F>(
    config: Config,
    main: impl Fn(Context) -> F + Sync,
) -> Vec<Result<R, Error>>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    let each =
        [2, 3].into_iter().find(|each| config.ranks.is_multiple_of(*each) && config.ranks > *each);
    let each = each.unwrap_or(1);
    on_processes(config.ranks / each, Config { ranks: each, ..config }, main)
}

/// Returns the result of each rank of `processes` processes; one that fails has one error for all its
/// ranks.
pub(crate) fn on_processes<R, F>(
    processes: u32,
    config: Config,
    main: impl Fn(Context) -> F + Sync,
) -> Vec<Result<R, Error>>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    let _watchdog = watchdog(&format!("{processes} processes of {} ranks", config.ranks));
    let rails = ShmRail::mesh(processes, &ShmConfig::default()).unwrap();
    let (main, config) = (&main, &config);
    let each = config.ranks as usize;
    thread::scope(|scope| {
        let start = |rail| scope.spawn(move || exec_on_rail(Arc::new(rail), config.clone(), main));
        let threads: Vec<_> = rails.into_iter().map(start).collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results
            .flat_map(|results| match results {
                Ok(results) => results.into_iter().map(Ok).collect(),
                Err(error) => Vec::from_iter((0..each).map(|_| Err(error.clone()))),
            })
            .collect()
    })
}
