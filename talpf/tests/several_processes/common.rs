//! Helpers of tests of ranks in several processes, whatever connects them.

use std::future::Future;

use talpf::{Config, Context, Error};

pub(crate) use crate::in_one_process::*;
pub(crate) use crate::rails::{on_wires, run_all};

/// Most words of a put that are copied, as they travel with its claim.
pub(crate) const COPIED: usize = 512;
/// Number of the first slot that a program registers: the rails of these tests have some before.
pub(crate) const FIRST_SLOT: u32 = 2;

/// Returns the results of the ranks, or the error of one of them: of one that did not fail by another one.
pub(crate) fn run<R, F>(config: Config, main: impl Fn(Context) -> F + Sync) -> Result<Vec<R>, Error>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    let mut ends = run_all(config, main);
    let by_itself = |end: &Result<R, Error>| match end {
        Ok(_) => false,
        Err(error) => !matches!(error, Error::PeerFailed { .. }),
    };
    if let Some(failed) = ends.iter().position(by_itself) {
        ends.swap(0, failed);
    }
    ends.into_iter().collect()
}

/// Asserts that every part is in the text of an error of a rank, or that it is the failure of a
/// peer.
#[track_caller]
pub(crate) fn says(error: &Error, parts: &[&str]) {
    if !matches!(error, Error::PeerFailed { .. }) {
        crate::in_one_process::says(error, parts);
    }
}
