//! Helpers of tests of ranks in several processes, whatever connects them.

use std::env;
use std::future::Future;

use talpf::{Config, Context, Error};

pub(crate) use crate::in_one_process::*;
pub(crate) use crate::rails::on_wires;
use crate::rails::{over_shared_memory, over_sockets, over_tcp, several_in_each};

/// Most words of a put that are copied, as they travel with its claim.
pub(crate) const COPIED: usize = 512;

/// Returns the result of each rank, over the rail that the environment asks for.
pub(crate) fn run_all<R, F>(
    config: Config,
    main: impl Fn(Context) -> F + Sync,
) -> Vec<Result<R, Error>>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    match env::var("TALPF_TEST_RAIL").as_deref() {
        Err(_) => over_sockets(config, main),
        Ok("shm") => over_shared_memory(config, main),
        Ok("tcp") => over_tcp(config, main),
        Ok("shm-ranks") => several_in_each(config, main),
        Ok(other) => panic!("TALPF_TEST_RAIL is {other}, not shm, tcp or shm-ranks"),
    }
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
