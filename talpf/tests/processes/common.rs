//! Runs a program on ranks that know each other by a wire only.

use std::future::Future;
use std::sync::Arc;
use std::thread;

use ibverbs_sim::{SocketWire, Wire};
use talpf::{Config, Context, Error, hook};

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
