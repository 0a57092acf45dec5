//! The sending half of a rank: its open rounds, and operations until they have returned their
//! guards.
//!
//! An operation is issued in an open round, which keeps a handle of its sender. It is batched,
//! posted to a [`Peer`](crate::peer::Peer), parked there, queued to be retried, or pending until
//! the device has carried it out. Any thread may call; every part has its own lock or atomics.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use talpf_runtime::Group;
use talpf_runtime::service;

use crate::config::Config;
use crate::error::Error;
use crate::failure::{Failure, RunFailure};
use crate::numbers::Rank;
use crate::open_rounds::OpenRounds;
use crate::operation::{Batches, Issued, Pending, RetryQueue};
use crate::peer::{Engine, LocalPeer, Peers};
use crate::round::{RoundOf, RoundOwner};
use crate::slot::SlotTable;
use crate::superstep_exchange::SuperstepExchange;
use crate::tracer::Tracer;
use crate::window::{Areas, Claim};

/// A round of a lane at its sender.
pub(crate) type RoundState = RoundOf<Arc<Sender>>;

/// The sending half of one rank.
pub(crate) struct Sender {
    /// The part of the rank that peers share.
    pub(crate) own: Arc<LocalPeer>,
    pub(crate) peers: Peers,
    pub(crate) run_failure: Arc<RunFailure>,
    /// The failure of this rank.
    pub(crate) failure: Arc<Failure>,
    pub(crate) group: Group,
    pub(crate) slots: SlotTable,
    pub(crate) open_rounds: CachePadded<OpenRounds<Arc<Sender>>>,
    pub(crate) batches: Batches<Arc<RoundState>>,
    /// Exchange of plain BSP, if all ranks share memory and nobody traces or times it.
    pub(crate) supersteps: Option<Arc<SuperstepExchange>>,
    pub(crate) pending: Pending,
    /// Operations that found no room or no credit.
    pub(crate) retries: RetryQueue<Issued>,
    pub(crate) tracer: Tracer,
    /// Number of the run, unique in this process.
    pub(crate) run: u64,
    pub(crate) checks_conflicts: bool,
    /// `true` if what is sent to a rank of this process need not be announced by the device.
    pub(crate) signals_directly: bool,
}

/// Default limit of the memory slots of a context.
const SLOTS: usize = 64;

impl Sender {
    /// Makes the sending half of the rank of `own`, in run number `run`.
    pub(crate) fn new(
        own: &Arc<LocalPeer>,
        peers: &Peers,
        run_failure: &Arc<RunFailure>,
        group: Group,
        config: &Config,
        (run, supersteps): (u64, &Option<Arc<SuperstepExchange>>),
    ) -> Self {
        Sender {
            own: Arc::clone(own),
            peers: peers.clone(),
            run_failure: Arc::clone(run_failure),
            failure: Arc::clone(run_failure.of(own.rank)),
            slots: SlotTable::new(run, SLOTS),
            open_rounds: CachePadded::new(OpenRounds::new()),
            batches: Batches::new(own.endpoint.max_transfer),
            supersteps: supersteps.clone(),
            pending: Pending::default(),
            retries: RetryQueue::default(),
            tracer: Tracer::new(
                config.runtime.recorder.as_ref(),
                &group,
                peers.len(),
                peers.remotes().next().is_some(),
            ),
            group,
            run,
            checks_conflicts: config.check_conflicts,
            signals_directly: config.signals_directly(),
        }
    }

    #[inline]
    pub(crate) fn rank(&self) -> Rank {
        self.own.rank
    }

    /// Returns the error of this rank, if it has failed.
    #[inline]
    pub(crate) fn error(&self) -> Option<Error> {
        self.failure.error()
    }

    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.has_failed()
    }

    /// Fails the run with an error of this rank.
    #[cold]
    pub(crate) fn fail(&self, error: &Error) {
        self.run_failure.fail(&[self.rank()], error);
    }

    /// Makes the next pass of the engine fail the run, for callers that hold a lock.
    #[cold]
    pub(crate) fn fail_soon(&self, error: Error) {
        self.own.fail_soon(&self.failure, &error);
    }

    /// Fails the run with the panic of `code` of the program that was called for this rank.
    #[cold]
    pub(crate) fn fail_foreign(&self, code: &str, panic: &str) {
        let reason = format!("{code} has panicked: {panic}");
        self.run_failure.fail_with_reason(self.rank(), &reason);
    }

    /// Queues an operation to be retried, at the next pass of the engine or when a target has
    /// credit again.
    #[cold]
    pub(crate) fn push_retry(&self, issued: Issued) {
        self.retries.push(issued.destination(), issued);
        self.own.wake_poller();
    }

    pub(crate) fn has_retries(&self) -> bool {
        self.retries.len() > 0
    }

    /// Returns `true` if operations are to be retried, and not only once a message gives credit.
    #[inline]
    pub(crate) fn has_unannounced_retries(&self) -> bool {
        self.has_retries()
            && (self.has_failed() || !self.retries.all_lack_credit(&self.own.awaits_credit))
    }

    /// Returns the number of operations under way.
    pub(crate) fn outstanding(&self) -> usize {
        self.pending.len() + self.retries.len()
    }

    /// Notes, if the run checks for conflicts, an operation without a window that is about to be
    /// posted to a rank of this process.
    #[inline]
    pub(crate) fn note(&self, round: &RoundState, target: Rank, claim: Claim) {
        if self.checks_conflicts {
            self.peers.note(target, round.lane, round.number, claim);
        }
    }
}

impl RoundState {
    /// Makes a pass of the engine of the rank, or leaves that to the thread inside.
    pub(crate) fn progress(&self) {
        if let Some(engine) = self.engine() {
            engine.progress();
        }
    }

    /// Makes a pass of the engine of the rank if its doorbell was rung since the last one.
    #[inline]
    pub(crate) fn progress_if_rung(&self) {
        if self.sender.own.doorbell.is_rung()
            && let Some(engine) = self.engine()
        {
            engine.progress_if_rung();
        }
    }

    /// Polls while the worker has nothing else to do, until `ready` returns a result.
    #[inline]
    pub(crate) fn poll_while_spare<R>(&self, ready: impl Fn() -> Option<R>) -> Option<R> {
        let engine = self.engine()?;
        service::poll_while_spare(self.sender.own.spare_polls(), || engine.poll(), ready)
    }

    /// Declares the windows that the round has.
    pub(crate) fn declare(&self, windows: &mut Areas) {
        let (sender, rank) = (&self.sender, self.rank);
        let has_landed = |source| sender.peers.has_landed(source, rank);
        let freed = sender.own.windows.declare(self.lane, self.number, windows, &has_landed);
        sender.peers.run_deferred(rank, freed);
    }
}

impl RoundOwner for Arc<Sender> {
    #[inline]
    fn rank(&self) -> Rank {
        self.own.rank
    }

    fn engine(&self) -> Option<Arc<dyn Engine>> {
        self.own.engine()
    }

    fn ranks(&self) -> u32 {
        self.peers.len()
    }

    #[inline]
    fn limit(&self) -> u32 {
        self.open_rounds.limit()
    }

    #[inline]
    fn trace_clock(&self) -> u64 {
        self.tracer.clock()
    }

    #[cold]
    fn fail_soon(&self, error: Error) {
        Sender::fail_soon(self, error);
    }
}
