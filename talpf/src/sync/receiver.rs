//! The receiving half of a rank: its windows, and the engine that takes in completions and advances
//! syncs.
//!
//! A single thread is inside the engine at a time. A thread that changes something that a sync may
//! wait for rings the doorbell and then tries to enter; if another thread is inside, that one sees
//! the doorbell as it leaves and makes another pass (`doorbell.rs`). So no thread waits for the
//! engine and no change is missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use talpf_primitives::{Mutex, MutexGuard};

use super::SyncMode;
use super::active_sync::ActiveSync;
use super::deferred::Deferred;
use super::engine::{Limits, State};
use crate::error::Error;
use crate::numbers::{LaneNumber, Rank, Round};
use crate::operation::Pending;
use crate::peer::{Engine, LocalPeer};
use crate::processes::Processes;
use crate::sender::Sender;

/// The receiving half of one rank.
pub(crate) struct Receiver {
    /// The sending half of the rank, with the part that both share with their peers.
    pub(crate) sender: Arc<Sender>,
    /// The other processes of the run, if any.
    processes: Option<Arc<Processes>>,
    state: CachePadded<Mutex<State>>,
    /// Number of syncs that have not ended. On a cache line of its own, as every sync changes it.
    syncs: CachePadded<AtomicUsize>,
    /// Set once the polling task is to end.
    stop: AtomicBool,
}

impl Receiver {
    /// Makes the receiving half of the rank of `sender`. `workers` is the number of workers, if all
    /// ranks share those.
    pub(crate) fn new(
        sender: Arc<Sender>,
        processes: Option<Arc<Processes>>,
        workers: Option<usize>,
        limits: Limits,
    ) -> Arc<Self> {
        let state = State::new(sender.rank(), sender.peers.len(), workers, limits);
        let receiver = Arc::new(Receiver {
            sender,
            processes,
            state: CachePadded::new(Mutex::new(state)),
            syncs: CachePadded::new(AtomicUsize::new(0)),
            stop: AtomicBool::new(false),
        });
        receiver.own().set_engine(Arc::<Receiver>::clone(&receiver));
        receiver
    }

    #[inline]
    pub(crate) fn rank(&self) -> Rank {
        self.sender.rank()
    }

    /// Returns the part of the rank that peers share.
    #[inline]
    pub(crate) fn own(&self) -> &LocalPeer {
        &self.sender.own
    }

    /// Returns the other processes of the run, if any.
    #[inline]
    pub(crate) fn processes(&self) -> Option<&Processes> {
        self.processes.as_deref()
    }

    /// Returns the other processes of the run, if the polling task of this rank serves them: that of
    /// the first rank of a process does.
    #[inline]
    pub(crate) fn served_processes(&self) -> Option<&Processes> {
        self.processes().filter(|processes| processes.are_served_by(self.rank()))
    }

    /// Returns the number of syncs that have not ended.
    pub(crate) fn syncs(&self) -> usize {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Makes the polling task end.
    pub(crate) fn stop_polling(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.own().wake_poller();
    }

    /// Returns `true` once the polling task is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Changes the number of syncs, for a thread inside, so no other thread does.
    #[inline]
    fn count_syncs(&self, change: isize) {
        let syncs = self.syncs().wrapping_add_signed(change);
        self.syncs.store(syncs, Ordering::Relaxed);
    }

    /// Returns the number of operations that have arrived for the oldest round of a lane.
    pub(crate) fn arrivals(&self, lane: LaneNumber) -> u32 {
        let mut state = self.state.lock();
        let lane = state.lane(lane);
        let oldest = lane.syncs.front().map(|sync| sync.round.number);
        let oldest = oldest.unwrap_or(lane.arrivals.first());
        let arrivals = lane.arrivals.round(oldest).map_or(0, |round| round.total);
        drop(state);
        self.progress_after_unlock();
        arrivals
    }

    /// Returns the number of operations a sync expects, if known when it begins. For traces.
    pub(super) fn expected(&self, mode: SyncMode, lane: LaneNumber) -> Option<u32> {
        self.with_state(|state| state.lane(lane).known(mode))
    }

    /// Locks the state for `inspect`, for reports. Wakes the polling task if a thread has left a pass
    /// to this one meanwhile.
    pub(super) fn with_state<R>(&self, inspect: impl FnOnce(&mut State) -> R) -> R {
        let inspected = inspect(&mut self.state.lock());
        if self.own().doorbell.is_rung_after_unlock() {
            self.own().wake_poller();
        }
        inspected
    }

    /// Returns `true` if nothing is under way that the polling task would see. This includes
    /// packets that a link with faults has lost: the task advances the clock by which they are sent
    /// again.
    pub(crate) fn is_quiet(&self, has_timers: bool) -> bool {
        self.sender.outstanding() == 0
            && !self.own().windows.has_delayed()
            && !self.own().notifications.has_delayed()
            && (!has_timers || self.own().endpoint.is_idle())
    }

    /// Returns `true` if every request of this rank was sent and answered.
    pub(crate) fn has_all_answers(&self) -> bool {
        self.own().endpoint.is_idle() && self.with_state(|state| state.has_sent_controls())
    }

    /// Ends the syncs that never end, at the end of the run.
    pub(crate) fn clear(&self) {
        let lanes = std::mem::take(&mut self.state.lock().lanes);
        for never_ends in lanes.iter().flat_map(|lane| &lane.syncs) {
            let shut_down = Error::Runtime(talpf_runtime::Error::ShutDown);
            // The run is over, so a panic of the waker goes nowhere.
            let _ = never_ends.round.outcome.set(Err(shut_down));
        }
    }

    /// Begins a sync: closes its round, and advances the sync as far as possible.
    pub(crate) fn begin(&self, sync: ActiveSync) {
        let mut state = self.state.lock();
        self.count_syncs(1);
        let is_posted = sync.round.leave();
        state.add(sync);
        if is_posted {
            self.own().doorbell.answer();
            self.run_passes(Some(state));
        } else {
            drop(state);
            self.progress_after_unlock();
        }
    }

    /// As [`Receiver::progress_if_rung`], for a thread that has unlocked the state without a pass.
    #[inline]
    fn progress_after_unlock(&self) {
        if let Some(state) = self.own().doorbell.enter_again(&self.state) {
            self.run_passes(Some(state));
        }
    }

    /// Makes passes if the doorbell was rung since the last one.
    #[inline]
    pub(crate) fn progress_if_rung(&self) {
        if self.own().doorbell.is_rung() {
            self.run_passes(self.own().doorbell.enter(&self.state));
        }
    }

    /// Makes passes if there is anything to do. Without that it takes no lock. Returns `true` if there were
    /// completions, or operations of other processes have got on.
    #[inline]
    pub(crate) fn poll(&self) -> bool {
        let endpoint = &self.own().endpoint;
        let news =
            !endpoint.arrived.is_empty() || !endpoint.sent.is_empty() || self.has_unannounced();
        let has_come = self.processes().is_some_and(Processes::progress);
        let taken = if news || has_come { self.progress() } else { None };
        has_come || taken.is_some_and(|count| count > 0)
    }

    /// Returns `true` if a sync may wait for something that brings no completion: room in a send
    /// queue, credit at a target of this process, an operation that another thread is landing.
    #[inline]
    pub(crate) fn has_unannounced(&self) -> bool {
        let own = self.own();
        own.doorbell.is_rung()
            || self.sender.has_unannounced_retries()
            || own.windows.has_delayed()
            || own.notifications.has_delayed()
    }

    /// Makes a pass: takes in completions and advances syncs. Returns the number of completions, or
    /// `None` if another thread is inside.
    pub(crate) fn progress(&self) -> Option<usize> {
        self.run_passes(self.own().doorbell.ring_and_enter(&self.state))
    }

    /// Makes passes in the thread that is inside, until the doorbell is silent.
    fn run_passes<'s>(&'s self, mut inside: Option<MutexGuard<'s, State>>) -> Option<usize> {
        let mut completions = None;
        let mut again = false;
        let mut deferred = Deferred::default();
        while let Some(mut state) = inside {
            let taken = state.pass(&self.sender, &mut deferred);
            if deferred.ended.is_some() {
                self.count_syncs(-1);
            }
            drop(state);
            *completions.get_or_insert(0) += taken;
            again |= std::mem::take(&mut deferred.again);
            deferred.run(&self.sender);
            inside = self.own().doorbell.enter_again(&self.state);
        }
        if again {
            // For the next poll, as another pass here would spin. No completion wakes the polling task
            // for that: the thread that carries out what the sync waits for may have checked before.
            self.own().ring_doorbell();
            self.own().wake_poller();
        }
        completions
    }
}

impl Engine for Receiver {
    fn progress(&self) {
        Receiver::progress(self);
    }

    fn progress_if_rung(&self) {
        Receiver::progress_if_rung(self);
    }

    fn poll(&self) {
        Receiver::poll(self);
    }

    fn resume(&self) {
        if self.sender.has_retries() {
            self.sender.try_again();
        }
        Receiver::progress_if_rung(self);
    }

    fn has_ended(&self, lane: LaneNumber, round: Round) -> bool {
        self.with_state(|state| state.has_ended(lane, round))
    }

    fn pending(&self) -> &Pending {
        &self.sender.pending
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests;
