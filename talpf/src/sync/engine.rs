//! The engine of a rank, which takes in completions and advances syncs.
//!
//! A single thread is inside at a time. A thread that changes something that a sync may wait for
//! rings the doorbell and then tries to enter; if another thread is inside, that one sees the
//! doorbell as it leaves and makes another pass (`doorbell.rs`). So no thread waits for the engine
//! and no change is missed.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use ibverbs_sim::{CompletionOpcode, CompletionStatus, Operation, WorkCompletion};
use talpf_primitives::MutexGuard;
use talpf_traces::counted;

use super::SyncMode;
use super::active_sync::ActiveSync;
use super::arrivals::LaneArrivals;
use super::deferred::Deferred;
use super::dissemination::Plan;
use super::doorbell::Doorbell;
use super::stages::{LaneState, expected_from};
use crate::endpoint::{NOBODY, POST_BATCH};
use crate::error::Error;
use crate::immediate::{Immediate, Kind};
use crate::numbers::{LaneNumber, Rank, Round};
use crate::world::{RankState, World};

/// The receiving half of a rank.
pub(crate) struct Engine {
    state: Doorbell<State>,
    /// Number of syncs that have not ended.
    syncs: AtomicUsize,
}

pub(super) struct State {
    pub(super) rank: Rank,
    pub(super) ranks: u32,
    pub(super) plan: Plan,
    pub(super) lanes: Vec<LaneState>,
    /// Largest number of rounds that peers may be ahead.
    most_ahead: u64,
    /// Buffer for the completions of one poll.
    batch: Vec<WorkCompletion>,
    /// Receives to be posted again, several at once.
    handled: Vec<u64>,
    /// Control messages that wait for room in a send queue, in order.
    unsent_controls: VecDeque<Control>,
}

struct Control {
    target: Rank,
    immediate: Immediate,
    payload: u64,
}

impl Engine {
    /// Makes the engine of `rank`, one of `ranks`. `workers` is their number of workers, if all
    /// ranks are in this process.
    pub(crate) fn new(
        rank: Rank,
        ranks: u32,
        workers: Option<usize>,
        poll_batch: usize,
        most_ahead: u64,
    ) -> Self {
        let state = State {
            rank,
            ranks,
            plan: Plan::new(rank, ranks, workers),
            lanes: Vec::new(),
            most_ahead,
            batch: vec![WorkCompletion::default(); poll_batch],
            handled: Vec::new(),
            unsent_controls: VecDeque::new(),
        };
        Engine { state: Doorbell::new(state), syncs: AtomicUsize::new(0) }
    }

    pub(crate) fn ring_doorbell(&self) {
        self.state.ring();
    }

    /// Changes the number of syncs. The caller has locked the state, so no other thread does.
    #[inline]
    pub(super) fn count_syncs(&self, change: isize) {
        let syncs = self.syncs.load(Ordering::Relaxed).wrapping_add_signed(change);
        self.syncs.store(syncs, Ordering::Relaxed);
    }

    /// Returns the number of syncs that have not ended.
    pub(crate) fn syncs(&self) -> usize {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Returns the number of operations that have arrived for the oldest round of a lane.
    pub(crate) fn arrivals(&self, lane: LaneNumber) -> u32 {
        let mut state = self.state.lock();
        let lane = state.lane(lane);
        let oldest = lane.syncs.front().map(|sync| sync.round.number);
        let oldest = oldest.unwrap_or(lane.arrivals.first());
        lane.arrivals.round(oldest).map_or(0, |round| round.total)
    }

    /// Returns the number of operations a sync expects, if known when it begins. For traces.
    pub(super) fn expected(&self, mode: SyncMode, lane: LaneNumber) -> Option<u32> {
        self.state.lock().lane(lane).known(mode)
    }

    /// Locks the state for `inspect`, for reports.
    pub(super) fn with_state<R>(&self, inspect: impl FnOnce(&mut State) -> R) -> R {
        inspect(&mut self.state.lock())
    }

    /// Returns `true` if no control message waits for room in a send queue.
    pub(crate) fn has_sent_controls(&self) -> bool {
        self.state.lock().has_sent_controls()
    }

    pub(crate) fn clear(&self) {
        let lanes = std::mem::take(&mut self.state.lock().lanes);
        for never_ends in lanes.iter().flat_map(|lane| &lane.syncs) {
            let shut_down = Error::Runtime(talpf_runtime::Error::ShutDown);
            // The run is over, so a panic of the waker goes nowhere.
            let _ = never_ends.round.outcome.set(Err(shut_down));
        }
    }
}

impl RankState {
    /// Begins a sync: closes its round, and advances the sync as far as possible.
    pub(crate) fn begin(&self, sync: ActiveSync, world: &World) {
        let mut state = self.engine.state.lock();
        self.engine.count_syncs(1);
        let is_posted = sync.round.leave();
        state.add(sync);
        if is_posted {
            self.engine.state.answer();
            self.run_passes(Some(state), world);
        } else {
            drop(state);
            self.progress_if_rung(world);
        }
    }

    /// Makes passes if the doorbell was rung since the last one.
    #[inline]
    pub(crate) fn progress_if_rung(&self, world: &World) {
        if self.engine.state.is_rung() {
            self.run_passes(self.engine.state.enter(), world);
        }
    }

    /// Makes passes if there is anything to do. Without that it takes no lock.
    #[inline]
    pub(crate) fn poll(&self, world: &World) -> usize {
        let news = !self.endpoint.arrived.is_empty()
            || !self.endpoint.sent.is_empty()
            || self.has_unannounced();
        let news = world.processes().is_some_and(|others| others.progress(world)) || news;
        if news { self.progress(world).unwrap_or(0) } else { 0 }
    }

    /// Returns `true` if a sync may wait for something that brings no completion: room in a send
    /// queue, credit at a target, an operation that another thread is landing.
    #[inline]
    pub(crate) fn has_unannounced(&self) -> bool {
        self.engine.state.is_rung() || self.has_retries() || self.windows.has_delayed()
    }

    /// Makes a pass: takes in completions and advances syncs. Returns the number of completions, or
    /// `None` if another thread is inside.
    pub(crate) fn progress(&self, world: &World) -> Option<usize> {
        self.run_passes(self.engine.state.ring_and_enter(), world)
    }

    /// Makes passes in the thread that is inside, until the doorbell is silent.
    fn run_passes<'s>(
        &'s self,
        mut inside: Option<MutexGuard<'s, State>>,
        world: &World,
    ) -> Option<usize> {
        let mut completions = None;
        let mut again = false;
        let mut deferred = Deferred::default();
        while let Some(mut state) = inside {
            let taken = state.pass(self, world, &mut deferred);
            drop(state);
            *completions.get_or_insert(0) += taken;
            again |= std::mem::take(&mut deferred.again);
            deferred.run(self, world);
            inside = self.engine.state.enter_again();
        }
        if again {
            // For the next poll: another pass here would spin.
            self.engine.ring_doorbell();
        }
        completions
    }

    /// Describes what the syncs of this rank wait for, for hang reports.
    pub(crate) fn describe(&self, text: &mut String) {
        let absent = self.absent();
        self.engine.state.lock().describe(self, &absent, text);
        for (source, count) in self.windows.parked() {
            let operations = counted(count, "operation");
            let _ = writeln!(text, "  {}: keeps {operations} of {source} parked", self.rank);
        }
    }
}

impl State {
    pub(super) fn lane(&mut self, lane: LaneNumber) -> &mut LaneState {
        let (ranks, most_ahead) = (self.ranks as usize, self.most_ahead);
        if self.lanes.len() <= lane.index() {
            self.lanes.resize_with(lane.index() + 1, || LaneState {
                arrivals: LaneArrivals::new(ranks, most_ahead),
                syncs: VecDeque::new(),
                pattern: None,
                unacknowledged: 0,
            });
        }
        &mut self.lanes[lane.index()]
    }

    /// Adds a sync behind those of earlier rounds.
    fn add(&mut self, sync: ActiveSync) {
        let syncs = &mut self.lane(sync.round.lane).syncs;
        let number = sync.round.number;
        if syncs.back().is_none_or(|last| last.round.number < number) {
            return syncs.push_back(sync);
        }
        let at = syncs.partition_point(|earlier| earlier.round.number < number);
        syncs.insert(at, sync);
    }

    fn pass(&mut self, rank: &RankState, world: &World, deferred: &mut Deferred) -> usize {
        let finished = world.finished();
        let taken = self.take_arrivals(rank, world, deferred)
            + self.take_completions(rank, world, deferred);
        if let Some(error) = rank.failing() {
            deferred.failures.push((error.ranks(rank.rank), error.clone()));
        }
        if rank.windows.has_delayed() {
            let has_landed = |source| world.has_landed(source, rank.rank);
            deferred.settled = rank.windows.settle(&has_landed);
        }
        let mut lanes = (0..self.lanes.len()).map(|lane| LaneNumber(lane as u8));
        let has_ended = lanes.any(|lane| self.advance(lane, rank, world, deferred));
        if has_ended && self.lanes.iter().any(|lane| !lane.syncs.is_empty()) {
            // The thread inside makes another pass, for the other syncs.
            rank.ring_doorbell();
        }
        self.fail_abandoned(&finished, rank, world, deferred);
        self.send_controls(rank, deferred);
        if rank.tracer.is_traced() && taken > 0 {
            rank.trace_pass(taken);
        }
        taken
    }

    /// Counts what has arrived and posts the receives again.
    fn take_arrivals(&mut self, rank: &RankState, world: &World, out: &mut Deferred) -> usize {
        if rank.endpoint.arrived.is_empty() {
            return 0;
        }
        let config = &world.config;
        let mut batch = std::mem::take(&mut self.batch);
        let mut taken = 0;
        loop {
            let count = rank.endpoint.arrived.poll(&mut batch);
            for completion in &batch[..count] {
                self.take_arrival(rank, world, completion, out);
                self.handled.push(completion.wr_id);
            }
            taken += count;
            if self.handled.len() >= POST_BATCH {
                if let Err(error) = rank.endpoint.post_receives(&self.handled) {
                    out.failures.push((vec![rank.rank], error));
                }
                self.handled.clear();
            }
            if count < config.poll_batch || taken >= config.max_polling {
                break;
            }
        }
        if taken >= config.max_polling {
            // There may be more: the thread inside makes another pass.
            rank.engine.ring_doorbell();
        }
        self.batch = batch;
        taken
    }

    #[inline]
    fn take_arrival(
        &mut self,
        rank: &RankState,
        world: &World,
        arrived: &WorkCompletion,
        out: &mut Deferred,
    ) {
        let source = rank.endpoint.rank_of(arrived.queue_pair);
        let (Some(source), Some(bits)) = (source, arrived.immediate) else {
            return;
        };
        if arrived.status != CompletionStatus::Success {
            let status = format!("{:?}", arrived.status);
            out.failures.push((vec![rank.rank], Error::WorkRequest { peer: source, status }));
            return;
        }
        let immediate = Immediate::from_bits(bits);
        if let (Kind::Granted, Some(processes)) = (immediate.kind, world.processes()) {
            processes.note_arrival(source);
        }
        let is_data = matches!(immediate.kind, Kind::Data | Kind::Granted);
        // A chain of short puts ends with a message that counts them.
        let counts = arrived.opcode == CompletionOpcode::Receive;
        let payload = if counts { rank.endpoint.received(arrived) } else { 0 };
        let (lane, most_ahead) = (immediate.lane, self.most_ahead);
        let plan = self.plan;
        let arrivals = &mut self.lane(lane).arrivals;
        let first = arrivals.first();
        let number =
            if is_data { immediate.round_near(first) } else { immediate.with_payload(payload).0 };
        let Some(round) = arrivals.round(number) else {
            let (ahead, behind) = ((source, number), (rank.rank, first));
            let is_ahead = Error::check_ahead(lane, ahead, behind, most_ahead);
            // An acknowledgement that no sync waits for any more is no error.
            let error = is_ahead.err().or(is_data.then(|| too_late(source, lane, number)));
            out.failures.extend(error.map(|error| (vec![rank.rank, source], error)));
            return;
        };
        match immediate.kind {
            Kind::Data | Kind::Granted => {
                let count = if counts { payload as u32 } else { 1 };
                let from_source = &mut round.data[source.index()];
                *from_source = from_source.saturating_add(count);
                round.total = round.total.saturating_add(count);
                if rank.tracer.is_traced() {
                    for _ in 0..count {
                        rank.trace_arrival(source, lane, number);
                    }
                }
            }
            Kind::Count => {
                round.count(source, payload as u32);
                plan.step_of(source).into_iter().for_each(|step| round.counted.add(step));
            }
            Kind::Barrier => match plan.step_of(source) {
                Some(step) => round.barrier.add(step),
                None => out.failures.push((vec![rank.rank], no_step(source))),
            },
            Kind::Ack => round.acks += 1,
        }
    }

    /// Takes in the completions of operations, whose guards return.
    fn take_completions(&mut self, rank: &RankState, world: &World, out: &mut Deferred) -> usize {
        if rank.endpoint.sent.is_empty() {
            return 0;
        }
        let mut batch = std::mem::take(&mut self.batch);
        let mut taken = 0;
        loop {
            let count = rank.endpoint.sent.poll(&mut batch);
            for completion in &batch[..count] {
                let peer = rank.endpoint.rank_of(completion.queue_pair).unwrap_or(rank.rank);
                let needs_nothing =
                    || world.processes().is_some_and(|others| others.is_finished(peer));
                let result = match completion.status {
                    CompletionStatus::Success => Ok(()),
                    CompletionStatus::RetryExceeded if needs_nothing() => Ok(()),
                    status => Err(Error::WorkRequest { peer, status: format!("{status:?}") }),
                };
                if let Err(error) = &result {
                    out.failures.push((vec![rank.rank], error.clone()));
                }
                if completion.wr_id != NOBODY
                    && let Some(done) = rank.pending.take(completion.wr_id)
                {
                    out.done.push((done, result));
                }
            }
            taken += count;
            if count < batch.len() || taken >= world.config.max_polling {
                break;
            }
        }
        self.batch = batch;
        taken
    }

    /// Queues a control message of a round.
    pub(super) fn control(
        &mut self,
        target: Rank,
        kind: Kind,
        at: (LaneNumber, Round),
        count: u32,
    ) {
        let (immediate, payload) =
            (Immediate::new(kind, at.0, at.1), Immediate::payload(at.1, count));
        self.unsent_controls.push_back(Control { target, immediate, payload });
    }

    /// Returns `true` if no control message waits for room in a send queue.
    pub(super) fn has_sent_controls(&self) -> bool {
        self.unsent_controls.is_empty()
    }

    /// Sends control messages in order, as far as the send queues have room.
    pub(super) fn send_controls(&mut self, rank: &RankState, out: &mut Deferred) {
        while let Some(control) = self.unsent_controls.front() {
            let request = Operation::SendWithImmediate { immediate: control.immediate.to_bits() };
            let payload = control.payload.to_ne_bytes();
            if rank.endpoint.post_inline(control.target, request, &payload).is_err() {
                return;
            }
            out.to_notify.add(control.target);
            self.unsent_controls.pop_front();
        }
    }

    fn describe(&mut self, rank: &RankState, absent: &[Vec<Rank>], text: &mut String) {
        let plan = self.plan;
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            let Some(sync) = lane.syncs.front() else {
                continue;
            };
            let round = sync.round.number;
            let _ = write!(text, "  {}: sync({}) of lane {number} {round} ", rank.rank, sync.mode);
            if let Some(arrivals) = lane.arrivals.round(round) {
                let expects = |rank| expected_from(rank, sync.mode, &lane.pattern, arrivals);
                let absent = absent.get(number).map_or(&[][..], Vec::as_slice);
                sync.describe(arrivals, expects, (absent, &plan), text);
            }
            text.push('\n');
        }
    }
}

fn no_step(rank: Rank) -> Error {
    let what = "a barrier message for which this rank has no step".to_owned();
    Error::BadControlMessage { rank, what }
}

fn too_late(source_rank: Rank, lane: LaneNumber, round: Round) -> Error {
    Error::UnexpectedArrivals { lane, round, source_rank, arrived: 1, expected: 0 }
}
