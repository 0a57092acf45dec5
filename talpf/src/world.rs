//! The ranks of a run: those of this process, and access to those of other processes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use crossbeam_utils::CachePadded;
use talpf_runtime::Group;

use crate::all_gather::{AllGather, Call, Gathered, Part};
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::failure::{Failure, FailureObserver, RunFailure};
use crate::numbers::{LaneNumber, Rank, Round};
use crate::open_rounds::OpenRounds;
use crate::operation::{Batches, Issued, Pending, RetryQueue};
use crate::polling::Sleeper;
use crate::processes::{Processes, WindowRequest};
use crate::round::RoundState;
use crate::rounds::{MOST_AHEAD, MOST_AHEAD_REMOTE};
use crate::slot::SlotTable;
use crate::sync::{Engine, WaitFlag};
use crate::tracer::Tracer;
use crate::window::{Claim, Freed, Landing, Outcome, WindowTable};

/// All ranks of a run.
pub(crate) struct World {
    /// Ranks of this process.
    ranks: Box<[RankState]>,
    /// Number of the first rank of this process.
    first: u32,
    size: u32,
    /// Number of the run, unique in this process.
    pub(crate) run: u64,
    /// The other processes of the run, if any.
    processes: Option<Arc<Processes>>,
    pub(crate) config: Config,
    pub(crate) all_gather: AllGather,
    failure: RunFailure,
}

/// The state of one rank.
pub(crate) struct RankState {
    pub(crate) rank: Rank,
    pub(crate) group: Group,
    pub(crate) endpoint: Endpoint,
    pub(crate) slots: SlotTable,
    /// On a cache line of its own, as the peers change it.
    pub(crate) windows: CachePadded<WindowTable>,
    pub(crate) open_rounds: CachePadded<OpenRounds>,
    pub(crate) batches: Batches,
    pub(crate) pending: Pending,
    pub(crate) engine: Engine,
    /// Operations that found no room or no credit.
    retries: RetryQueue,
    failure: Arc<Failure>,
    pub(crate) stop: AtomicBool,
    pub(crate) poller: Sleeper,
    /// On a cache line of its own, as the peers read it with every post.
    pub(crate) wait_flag: CachePadded<WaitFlag>,
    pub(crate) tracer: Tracer,
}

/// Default limit of the memory slots of a context.
const SLOTS: usize = 64;

impl World {
    /// Makes a run whose ranks are all in this process, or whose others are in `processes`. The
    /// number of a rank's group is that of the rank.
    pub(crate) fn new(
        config: Config,
        ranks: Vec<(Group, Endpoint)>,
        processes: Option<Arc<Processes>>,
    ) -> Arc<Self> {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let (size, here, apart) = (config.ranks, ranks.len(), processes.is_some());
        let first = ranks.first().map_or(0, |(group, _)| group.number());
        // Remote ranks limit their requests to their credit themselves.
        let credits = if apart { usize::MAX } else { config.credits };
        let most_ahead = if apart { MOST_AHEAD_REMOTE } else { MOST_AHEAD };
        let workers = (!apart).then_some(config.runtime.workers);
        let engine = |rank| Engine::new(rank, size, workers, config.poll_batch, most_ahead);
        let failure = RunFailure::new(ranks.iter().map(|(group, _)| Rank(group.number())));
        let states = ranks.into_iter().zip(failure.each());
        let states = states.map(|((group, endpoint), failure)| RankState {
            rank: Rank(group.number()),
            engine: engine(Rank(group.number())),
            group,
            endpoint,
            slots: SlotTable::new(run, SLOTS),
            windows: CachePadded::new(
                WindowTable::new(size, credits)
                    .noting(config.check_conflicts)
                    .for_peers_ahead(most_ahead),
            ),
            open_rounds: CachePadded::new(OpenRounds::new()),
            batches: Batches::new(),
            pending: Pending::default(),
            retries: RetryQueue::default(),
            failure: Arc::clone(failure),
            stop: AtomicBool::new(false),
            poller: Sleeper::default(),
            wait_flag: CachePadded::new(WaitFlag::new()),
            tracer: Tracer::new(config.runtime.recorder.is_some(), size),
        });
        let ranks = states.collect();
        let all_gather = AllGather::new(size, here);
        let world =
            Arc::new(World { ranks, first, size, run, processes, config, all_gather, failure });
        let observer: Weak<World> = Arc::downgrade(&world);
        world.failure.set_observer(observer);
        world.processes.iter().for_each(|others| others.set_world(Arc::downgrade(&world)));
        world
    }

    /// Returns the first rank of this process.
    pub(crate) fn first(&self) -> Rank {
        Rank(self.first)
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Returns the state of a rank of this process.
    #[inline]
    pub(crate) fn rank(&self, rank: Rank) -> &RankState {
        &self.ranks[(rank.0 - self.first) as usize]
    }

    /// Returns the other processes of the run, if `rank` is in one of them.
    #[inline]
    pub(crate) fn remote_processes(&self, rank: Rank) -> Option<&Arc<Processes>> {
        self.processes.as_ref().filter(|_| rank.0 != self.first)
    }

    /// Returns the other processes of the run, if any.
    #[inline]
    pub(crate) fn processes(&self) -> Option<&Arc<Processes>> {
        self.processes.as_ref()
    }

    /// Returns the ranks of this process.
    pub(crate) fn ranks(&self) -> &[RankState] {
        &self.ranks
    }

    /// Returns `true` if the device has carried out every request of `source` to `target`.
    #[inline]
    pub(crate) fn has_landed(&self, source: Rank, target: Rank) -> bool {
        match self.remote_processes(source) {
            Some(processes) => processes.has_landed(source),
            None => self.rank(source).endpoint.is_drained(target),
        }
    }

    /// Passes an operation to the windows of its target. A `quick` one is posted under a lock.
    #[inline]
    pub(crate) fn land<L: Landing>(
        &self,
        request: WindowRequest,
        claim: Claim,
        quick: bool,
        operation: L,
    ) -> Outcome<L> {
        let WindowRequest { target, lane, round } = request;
        if let Some(processes) = self.remote_processes(target) {
            return processes.request_window(request, claim, operation);
        }
        let has_landed = |source| self.has_landed(source, target);
        let windows = &self.rank(target).windows;
        let (outcome, freed) = windows.land(lane, round, claim, quick, operation, &has_landed);
        self.resume_sources(freed);
        outcome
    }

    /// Checks that `source` may be in `round` by now, in the process of `target`. A remote target
    /// checks for itself.
    ///
    /// **Errors**: `source` is too far ahead.
    #[cold]
    pub(crate) fn check_ahead(
        &self,
        target: Rank,
        source: Rank,
        lane: LaneNumber,
        round: Round,
    ) -> Result<(), Error> {
        match self.remote_processes(target) {
            None => self.rank(target).windows.check_ahead((target, source), lane, round),
            Some(_) => Ok(()),
        }
    }

    /// Notes, if the run checks for conflicts, an operation without a window that is about to be
    /// posted to a rank of this process.
    #[inline]
    pub(crate) fn note(&self, round: &RoundState, target: Rank, claim: Claim) {
        if self.config.check_conflicts {
            self.rank(target).windows.note(round.lane, round.number, claim);
        }
    }

    /// Gives the bytes of a collective call and waits for those of all ranks. The other part of
    /// `own` is kept meanwhile. Every rank calls in the same order, also one that has failed.
    ///
    /// **Errors**: that of `own`; a rank that failed in the call or made another one; a run that
    /// has failed.
    pub(crate) async fn all_gather<K>(
        &self,
        rank: Rank,
        call: Call,
        own: Result<(Vec<u8>, K), Error>,
    ) -> Result<(K, Gathered), Error> {
        let (bytes, kept) = match own {
            Ok((bytes, kept)) => (Ok(bytes), Ok(kept)),
            Err(error) => (Err(error.to_string()), Err(error)),
        };
        let part = Part::new(call, bytes);
        let message = self.processes.as_ref().map(|processes| (processes, part.to_bytes()));
        let given = self.all_gather.give(rank, part);
        if let Some((processes, bytes)) = message {
            processes.give(given.number, &bytes);
        }
        let kept = kept?;
        Ok((kept, given.gather().await?))
    }

    /// Retries the operations of sources that have credit again.
    #[inline]
    pub(crate) fn resume_sources(&self, freed: Freed) {
        if !freed.is_nothing() {
            self.resume_sources_slow(&freed);
        }
    }

    #[cold]
    fn resume_sources_slow(&self, freed: &Freed) {
        // Remote ranks count their credit themselves.
        for source in freed.sources().iter().filter(|rank| self.remote_processes(**rank).is_none())
        {
            if self.rank(*source).has_retries() {
                self.rank(*source).try_again();
            }
            self.rank(*source).progress_if_rung(self);
        }
    }

    /// Fails the run, as [`RunFailure::fail`].
    #[cold]
    pub(crate) fn fail(&self, ranks: &[Rank], error: &Error) {
        self.failure.fail(ranks, error);
    }

    /// Fails the run with the error of the program of a rank.
    #[cold]
    pub(crate) fn fail_with_reason(&self, rank: Rank, reason: &str) {
        self.failure.fail_with_reason(rank, reason);
    }

    /// Checks that the run has ended without an error, once every main and all tasks have.
    ///
    /// **Errors**: the first failure of a rank of this process; operations of a round that no sync
    /// has closed.
    pub(crate) fn check_end(&self) -> Result<(), Error> {
        self.failure.check()?;
        self.ranks.iter().try_for_each(|state| state.open_rounds.check_closed())
    }

    /// Refuses all later calls on handles, and breaks the cycles between ranks, rounds and
    /// operations, at the end of the run.
    pub(crate) fn clear(&self) {
        self.failure.end_run();
        self.all_gather.fail(Error::RunEnded);
        self.processes.iter().for_each(|processes| processes.clear());
        for state in &self.ranks {
            let shut_down = || Error::Runtime(talpf_runtime::Error::ShutDown);
            state.retries.drain().for_each(|issued| issued.fail(shut_down()));
            state.windows.clear();
            state.engine.clear();
            state.open_rounds.clear();
            state.slots.clear();
        }
    }
}

impl FailureObserver for World {
    fn run_has_failed(&self, first: Rank, reason: &str) {
        self.ranks.iter().for_each(RankState::ring_doorbell);
        if let Some(processes) = &self.processes {
            processes.broadcast_failure(first, reason);
        }
        self.all_gather.fail(Error::PeerFailed { rank: first, reason: reason.to_owned() });
        if let Some(processes) = &self.processes {
            self.ranks.iter().for_each(|state| state.endpoint.cut_off());
            processes.fail();
        }
        for state in &self.ranks {
            let reason = state.failure().map_or(reason.to_owned(), |error| error.to_string());
            let reason = Arc::from(reason);
            state.windows.fail(&reason);
            state.open_rounds.fail(&reason);
            state.try_again();
            state.wake_poller();
        }
    }
}

impl RankState {
    /// Returns the error of a rank that has failed.
    #[inline]
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.error()
    }

    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.has_failed()
    }

    /// Returns the error of a rank that has failed or is about to fail, whose syncs stop.
    #[inline]
    pub(crate) fn broken(&self) -> Option<Error> {
        self.failure.broken()
    }

    /// Stops the syncs of this rank until the run has failed.
    #[cold]
    pub(crate) fn note_failing(&self, error: &Error) {
        self.failure.begin(error);
    }

    /// Makes the next pass of the engine fail the run, for callers that hold a lock.
    #[cold]
    pub(crate) fn fail_soon(&self, error: Error) {
        self.note_failing(&error);
        self.ring_doorbell();
        self.wake_poller();
    }

    /// Returns the error of a caller with a lock, until the run has failed.
    #[inline]
    pub(crate) fn failing(&self) -> Option<&Error> {
        self.failure.failing()
    }

    /// Rings the doorbell of the engine: something has changed that a sync may wait for.
    pub(crate) fn ring_doorbell(&self) {
        self.engine.ring_doorbell();
    }

    /// Queues an operation to be retried, at the next pass of the engine or when a target has
    /// credit again.
    #[cold]
    pub(crate) fn push_retry(&self, issued: Issued) {
        self.retries.push(issued);
        self.wake_poller();
    }

    pub(crate) fn has_retries(&self) -> bool {
        self.retries.len() > 0
    }

    /// Retries the queued operations.
    #[cold]
    pub(crate) fn try_again(&self) {
        self.retries.try_again(self);
    }

    /// Returns the number of operations under way.
    pub(crate) fn outstanding(&self) -> usize {
        self.pending.len() + self.retries.len()
    }

    /// Returns `true` if nothing is under way that the polling task would see. This includes
    /// packets that a link with faults has lost: the task advances the clock by which they are sent
    /// again.
    pub(crate) fn is_quiet(&self, has_timers: bool) -> bool {
        self.outstanding() == 0
            && !self.windows.has_delayed()
            && (!has_timers || self.endpoint.is_idle())
    }

    /// Returns `true` if every request of this rank was sent and answered.
    pub(crate) fn has_all_answers(&self) -> bool {
        self.endpoint.is_idle() && self.engine.has_sent_controls()
    }

    /// Wakes the polling task, if it sleeps.
    pub(crate) fn wake_poller(&self) {
        self.poller.wake();
    }
}
