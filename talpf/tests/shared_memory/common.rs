//! Runs a program on ranks that share memory.

use std::future::Future;
use std::sync::Arc;
use std::thread;

use ibverbs_sim::{ShmConfig, ShmRail};
use talpf::{Config, Context, Error, hook_on_rail};

pub(crate) use crate::in_one_process::*;

/// Most words of a put that are copied, as they travel with its claim.
pub(crate) const COPIED: usize = 512;

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

/// Returns the results of the ranks, or the error of one of them.
pub(crate) fn run<R, F>(config: Config, main: impl Fn(Context) -> F + Sync) -> Result<Vec<R>, Error>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    run_all(config, main).into_iter().collect()
}

/// Asserts that every part is in the text of an error of a rank, or that it is the failure of a
/// peer.
#[track_caller]
pub(crate) fn says(error: &Error, parts: &[&str]) {
    if !matches!(error, Error::PeerFailed { .. }) {
        crate::in_one_process::says(error, parts);
    }
}
