//! Runs a program on ranks that share memory.

use std::future::Future;
use std::sync::Arc;
use std::thread;

use ibverbs_sim::{ShmConfig, ShmRail};
use talpf::{Config, Context, Error, hook_on_rail};

pub(crate) use crate::in_one_process::*;
pub(crate) use crate::outcomes::{COPIED, run, says};

/// Returns the result of each rank.
pub(crate) fn run_all<R, F>(
    config: Config,
    main: impl Fn(Context) -> F + Sync,
) -> Vec<Result<R, Error>>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    let _watchdog = watchdog(&format!("{} processes", config.ranks));
    let rails = ShmRail::mesh(config.ranks, &ShmConfig::default()).unwrap();
    let (main, config) = (&main, &config);
    thread::scope(|scope| {
        let start = |rail| scope.spawn(move || hook_on_rail(Arc::new(rail), config.clone(), main));
        let threads: Vec<_> = rails.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
