//! The ranks of a program with tasks.

use std::time::Instant;

use talpf::{Config, Context, PollingFrequency, exec};

use super::{Machine, Observer};
use crate::Error;

/// What a rank hands back: its part of the result, and when its steps began and ended.
pub(crate) struct Part<T> {
    pub(crate) result: T,
    pub(crate) started: Instant,
    pub(crate) ended: Instant,
}

/// Runs `program` on the ranks and workers of `machine`. Returns the parts of the result by rank,
/// and the seconds from the first start to the last end.
///
/// **Errors**: those of `program`, and of [`exec`].
pub(crate) fn on_ranks<T, F>(
    machine: Machine,
    observer: &Observer,
    program: impl Fn(Context) -> F,
) -> Result<(Vec<T>, f64), Error>
where
    T: Send + 'static,
    F: Future<Output = Result<Part<T>, Error>> + Send + 'static,
{
    let mut config = Config {
        ranks: machine.ranks() as u32,
        polling: PollingFrequency::from_environment()?,
        ..Config::default()
    };
    config.runtime.workers = machine.workers();
    config.runtime.recorder = observer.recorder.clone();
    let parts = exec(config, program)?;
    let started = parts.iter().map(|part| part.started).min();
    let ended = parts.iter().map(|part| part.ended).max();
    let seconds =
        started.zip(ended).map_or(0.0, |(started, ended)| (ended - started).as_secs_f64());
    Ok((parts.into_iter().map(|part| part.result).collect(), seconds))
}
