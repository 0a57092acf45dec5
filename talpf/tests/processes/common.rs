//! Runs a program on ranks that know each other by a wire only.

use std::future::Future;
use std::sync::Arc;
use std::thread;

use ibverbs_sim::{SocketWire, Wire};
use talpf::{Config, Context, Error, hook};

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
    let wires = SocketWire::mesh(config.ranks).unwrap();
    let wires = wires.into_iter().map(|wire| Arc::new(wire) as Arc<dyn Wire>);
    on_wires(wires.map(|wire| (wire, config.clone())).collect(), main)
}

/// As [`run_all`], with a wire and settings for each rank.
pub(crate) fn on_wires<R, F>(
    ranks: Vec<(Arc<dyn Wire>, Config)>,
    main: impl Fn(Context) -> F + Sync,
) -> Vec<Result<R, Error>>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    let _watchdog = watchdog(&format!("{} processes", ranks.len()));
    let main = &main;
    thread::scope(|scope| {
        let start = |(wire, config)| scope.spawn(move || hook(wire, config, main));
        let threads: Vec<_> = ranks.into_iter().map(start).collect();
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
