//! The failure of a run: one state machine for each rank of this process.
//!
//! ```text
//! running ──► failing ──► failed
//!    └──────────────────────▲
//! ```
//!
//! A thread that holds a lock, or that stops a sync before the run may fail, makes its rank
//! *failing*: the next pass of the rank's engine fails the run. A run that fails makes all its
//! ranks *failed*, and then whoever has something to release is notified. Only this file changes
//! the state, and the first error of a rank stays: it is the one that the rank reports.

use std::sync::{Arc, OnceLock, Weak};

use crossbeam_utils::CachePadded;
use talpf_primitives::{AtomicU8, Ordering};

use crate::control_plane;
use crate::error::Error;
use crate::numbers::Rank;

/// Values of `phase`.
const RUNNING: u8 = 0;
const FAILING: u8 = 1;
const FAILED: u8 = 2;

/// The failure of one rank.
pub(crate) struct Failure {
    /// On a cache line of its own, as every pass of the engine reads it.
    phase: CachePadded<AtomicU8>,
    /// The error of the rank, set before the phase.
    error: OnceLock<Error>,
}

impl Failure {
    fn new() -> Self {
        Failure { phase: CachePadded::new(AtomicU8::new(RUNNING)), error: OnceLock::new() }
    }

    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.phase.load(Ordering::Acquire) == FAILED
    }

    /// Returns the error of a rank that has failed.
    #[inline]
    pub(crate) fn error(&self) -> Option<Error> {
        if self.has_failed() { self.error.get().cloned() } else { None }
    }

    /// Returns the error of a rank that is failing, until it has failed.
    #[inline]
    pub(crate) fn failing(&self) -> Option<&Error> {
        match self.phase.load(Ordering::Acquire) {
            FAILING => self.error.get(),
            _ => None,
        }
    }

    /// Returns the error of a rank that is failing or has failed, whose syncs stop.
    #[inline]
    pub(crate) fn broken(&self) -> Option<Error> {
        match self.phase.load(Ordering::Acquire) {
            RUNNING => None,
            _ => self.error.get().cloned(),
        }
    }

    /// Stops the syncs of the rank until the run has failed.
    #[cold]
    pub(crate) fn begin(&self, error: &Error) {
        let _ = self.error.set(error.clone());
        let (begun, known) = (Ordering::AcqRel, Ordering::Relaxed);
        let _ = self.phase.compare_exchange(RUNNING, FAILING, begun, known);
    }

    /// Sets the error that the rank reports once the run has failed, unless it has one.
    pub(crate) fn set_error(&self, error: Error) {
        let _ = self.error.set(error);
    }

    fn end(&self) {
        self.phase.store(FAILED, Ordering::Release);
    }
}

/// The part of a run that acts on its failure.
pub(crate) trait FailureObserver: Send + Sync {
    /// Releases whatever waits for operations, once all ranks of this process have failed. `first`
    /// is the rank that has failed first, for `reason`.
    fn run_has_failed(&self, first: Rank, reason: &str);
}

/// The failures of the ranks of this process.
pub(crate) struct RunFailure {
    ranks: Box<[(Rank, Arc<Failure>)]>,
    observer: OnceLock<Weak<dyn FailureObserver>>,
}

impl RunFailure {
    pub(crate) fn new(ranks: impl Iterator<Item = Rank>) -> Self {
        let ranks = ranks.map(|rank| (rank, Arc::new(Failure::new()))).collect();
        RunFailure { ranks, observer: OnceLock::new() }
    }

    /// Sets the part that acts on the failure.
    pub(crate) fn set_observer(&self, observer: Weak<dyn FailureObserver>) {
        let _ = self.observer.set(observer);
    }

    /// Returns the failure of a rank of this process.
    pub(crate) fn of(&self, rank: Rank) -> &Arc<Failure> {
        let first = self.ranks.first().map_or(0, |(first, _)| first.0);
        &self.ranks[(rank.0 - first) as usize].1
    }

    /// Returns the failures by rank.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Arc<Failure>> {
        self.ranks.iter().map(|(_, failure)| failure)
    }

    /// Returns `true` once all ranks of this process have failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.each().all(|failure| failure.has_failed())
    }

    /// Returns the error of a rank once a rank of this process has failed, which may be a moment before
    /// that rank has.
    #[cold]
    pub(crate) fn known(&self, rank: Rank) -> Option<Error> {
        let has_failed = self.each().any(|failure| failure.has_failed());
        if has_failed { self.of(rank).error.get().cloned() } else { None }
    }

    /// Fails the run, unless it has failed. `ranks` get `error`; the others get the failure of the
    /// first of them.
    #[cold]
    pub(crate) fn fail(&self, ranks: &[Rank], error: &Error) {
        if let Some(&first) = ranks.first() {
            self.end(first, &error.to_string(), |rank| {
                ranks.contains(&rank).then(|| error.clone())
            });
        }
    }

    /// Fails the run with the error of the program of a rank.
    #[cold]
    pub(crate) fn fail_with_reason(&self, rank: Rank, reason: &str) {
        self.end(rank, reason, |_| None);
    }

    fn end(&self, first: Rank, reason: &str, own: impl Fn(Rank) -> Option<Error>) {
        if self.has_failed() {
            return;
        }
        control_plane::fails(first, reason);
        let peer_failed = || Error::PeerFailed { rank: first, reason: reason.to_owned() };
        for (rank, failure) in &self.ranks {
            failure.set_error(own(*rank).unwrap_or_else(peer_failed));
        }
        // After all errors are set: a thread that finds a rank failed reports them.
        self.each().for_each(|failure| failure.end());
        if let Some(observer) = self.observer.get().and_then(Weak::upgrade) {
            observer.run_has_failed(first, reason);
        }
    }

    /// Refuses all later calls on handles, at the end of the run.
    pub(crate) fn end_run(&self) {
        for failure in self.each() {
            failure.set_error(Error::RunEnded);
            failure.end();
        }
    }

    /// Checks that no rank of this process has failed.
    ///
    /// **Errors**: the first failure of a rank, one with an error of its own if there is one.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let errors = || self.each().filter_map(|failure| failure.error());
        let is_own = |error: &Error| !matches!(error, Error::PeerFailed { .. });
        errors().find(is_own).or_else(|| errors().next()).map_or(Ok(()), Err)
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    fn limit(value: u64) -> Error {
        Error::Limit { what: "value", value, limit: 1 }
    }

    #[test]
    fn a_rank_that_knows_its_error_reports_it_but_does_not_fail_before_the_run() {
        let run = RunFailure::new((0..2).map(Rank));
        let own = run.of(Rank(0));
        own.set_error(limit(2));
        assert!(own.failing().is_none() && own.broken().is_none() && own.error().is_none());
        run.fail(&[Rank(1)], &limit(3));
        assert_eq!(own.error().unwrap().to_string(), limit(2).to_string());
    }

    #[test]
    fn a_rank_reports_the_first_error_that_it_learns_of() {
        let run = RunFailure::new((0..3).map(Rank));
        let each: Vec<_> = run.each().cloned().collect();
        each[0].begin(&limit(2));
        assert!(each[0].failing().is_some() && each[0].broken().is_some());
        assert!(each[0].error().is_none() && each[1].broken().is_none());
        run.fail(&[Rank(1)], &limit(3));
        let text = |rank: usize| each[rank].error().unwrap().to_string();
        assert_eq!((text(0), text(1)), (limit(2).to_string(), limit(3).to_string()));
        assert!(matches!(each[2].error(), Some(Error::PeerFailed { rank: Rank(1), .. })));
        run.fail(&[Rank(2)], &limit(4));
        each[2].begin(&limit(4));
        assert!(each[2].failing().is_none(), "a failed rank does not begin to fail");
        assert!(matches!(each[2].error(), Some(Error::PeerFailed { .. })));
    }
}
