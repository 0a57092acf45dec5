//! The state of a rank's engine: what has arrived, and the control messages that go out.
//!
//! The state is that of the thread inside the [`Receiver`](super::Receiver), one at a time. Its
//! stages are in `stages.rs`, its exchanges in `counting.rs`. It never calls up: what follows from a
//! pass is deferred.

use std::collections::VecDeque;

use ibverbs_sim::{
    CompletionOpcode, CompletionStatus, Error as DeviceError, Operation, PostError, WorkCompletion,
};
use talpf_traces::MessageKind;

use super::active_sync::{ActiveSync, Stage};
use super::arrivals::{LaneArrivals, RoundArrivals};
use super::deferred::Deferred;
use super::dissemination::Plan;
use super::lane_state::LaneState;
use crate::endpoint::{NOBODY, POST_BATCH};
use crate::error::Error;
use crate::immediate::{EagerArrival, Immediate, Kind};
use crate::notification::Notification;
use crate::numbers::{ArrivalNumber, LaneNumber, Rank, Round, TicketNumber};
use crate::sender::Sender;
use crate::window::{TicketEnd, no_ticket};

/// The state of an engine.
pub(super) struct State {
    pub(super) rank: Rank,
    pub(super) ranks: u32,
    pub(super) plan: Plan,
    pub(super) lanes: Vec<LaneState>,
    limits: Limits,
    /// Buffer for the completions of one poll.
    batch: Vec<WorkCompletion>,
    /// Receives to be posted again, several at once.
    handled: Vec<u64>,
    /// Control messages that wait for room in a send queue, in order.
    unsent_controls: VecDeque<Control>,
}

/// The limits of an engine.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Largest number of rounds that peers may be ahead.
    pub(crate) most_ahead: u64,
    /// Largest number of completions that are taken at a time.
    pub(crate) poll_batch: usize,
    /// Largest number of completions that are taken in a pass.
    pub(crate) max_polling: usize,
}

struct Control {
    target: Rank,
    immediate: Immediate,
    payload: u64,
    /// Time of the first attempt to post it, if control messages are traced; 0 before.
    called_ns: u64,
}

impl State {
    /// Makes the state of `rank`, one of `ranks`. `workers` is their number of workers, if all
    /// ranks are in this process.
    pub(super) fn new(rank: Rank, ranks: u32, workers: Option<usize>, limits: Limits) -> Self {
        State {
            rank,
            ranks,
            plan: Plan::new(rank, ranks, workers),
            lanes: Vec::new(),
            batch: vec![WorkCompletion::default(); limits.poll_batch],
            limits,
            handled: Vec::new(),
            unsent_controls: VecDeque::new(),
        }
    }

    pub(super) fn lane(&mut self, lane: LaneNumber) -> &mut LaneState {
        let (ranks, most_ahead) = (self.ranks as usize, self.limits.most_ahead);
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
    pub(super) fn add(&mut self, sync: ActiveSync) {
        let syncs = &mut self.lane(sync.round.lane).syncs;
        let number = sync.round.number;
        if syncs.back().is_none_or(|last| last.round.number < number) {
            return syncs.push_back(sync);
        }
        let at = syncs.partition_point(|earlier| earlier.round.number < number);
        syncs.insert(at, sync);
    }

    /// Counts what has arrived and posts the receives again.
    pub(super) fn take_arrivals(&mut self, sender: &Sender, out: &mut Deferred) -> usize {
        if sender.own.endpoint.arrived.is_empty() {
            return 0;
        }
        let mut batch = std::mem::take(&mut self.batch);
        let mut taken = 0;
        loop {
            let count = sender.own.endpoint.arrived.poll(&mut batch);
            for completion in &batch[..count] {
                self.take_arrival(sender, completion, out);
                self.handled.push(completion.wr_id);
            }
            taken += count;
            if self.handled.len() >= POST_BATCH {
                if let Err(error) = sender.own.endpoint.post_receives(&self.handled) {
                    out.failures.push((vec![self.rank], error));
                }
                self.handled.clear();
            }
            if count < batch.len() || taken >= self.limits.max_polling {
                break;
            }
        }
        if taken >= self.limits.max_polling {
            // There may be more: the thread inside makes another pass.
            sender.own.ring_doorbell();
        }
        self.batch = batch;
        taken
    }

    #[inline]
    fn take_arrival(&mut self, sender: &Sender, arrived: &WorkCompletion, out: &mut Deferred) {
        let Some(mut source) = sender.own.endpoint.rank_of(arrived.queue_pair) else {
            // A sync may wait for it.
            return out.failures.push((vec![self.rank], of_nobody(self.rank)));
        };
        let Some(bits) = arrived.immediate else {
            return;
        };
        if arrived.status != CompletionStatus::Success {
            return out.failures.push((vec![self.rank], failed(source, arrived.status)));
        }
        let immediate = Immediate::from_bits(bits);
        if immediate.kind == Kind::Notified {
            return take_notified(sender, source, immediate.arrival_number(), out);
        }
        if immediate.kind == Kind::Granted {
            sender.peers.note_granted_arrival(source, self.rank);
        }
        if immediate.kind == Kind::Ticket {
            return self.take_by_ticket(sender, source, immediate.ticket_number(), out);
        }
        let is_data = matches!(immediate.kind, Kind::Data | Kind::Granted);
        // A chain of short puts ends with a message that counts them.
        let counts = arrived.opcode == CompletionOpcode::Receive;
        let payload = if counts { sender.own.endpoint.received(arrived) } else { 0 };
        let mut count = if counts && is_data { payload as u32 } else { 1 };
        if immediate.kind == Kind::Eager {
            match self.take_eager(sender, source, EagerArrival::from_bits(payload as u32)) {
                Some(eager) => (source, count) = (eager.source, eager.puts.max(1)),
                None => return out.failures.push((vec![self.rank], not_eager(source))),
            }
        }
        let (lane, most_ahead) = (immediate.lane, self.limits.most_ahead);
        let plan = self.plan;
        let arrivals = &mut self.lane(lane).arrivals;
        let first = arrivals.first();
        let number =
            if is_data { immediate.round_near(first) } else { immediate.with_payload(payload).0 };
        if !is_data
            && sender.tracer.keeps_control()
            && let Some(kind) = traced_kind(immediate.kind, || plan.step_of(source).is_some())
        {
            // Also one of a round that is over, such as a late acknowledgement.
            sender.tracer.control_arrived(source, kind, lane, number);
        }
        let Some(round) = arrivals.round(number) else {
            let (ahead, behind) = ((source, number), (self.rank, first));
            let is_ahead = Error::check_ahead(lane, ahead, behind, most_ahead);
            // An acknowledgement that no sync waits for any more is no error.
            let error = is_ahead.err().or(is_data.then(|| too_late(source, lane, number)));
            out.failures.extend(error.map(|error| (vec![self.rank, source], error)));
            return;
        };
        match immediate.kind {
            Kind::Data | Kind::Granted | Kind::Eager => {
                take_data(sender, round, (lane, number), (source, count));
            }
            Kind::Count => {
                round.count(source, payload as u32);
                plan.step_of(source).into_iter().for_each(|step| round.counted.add(step));
            }
            Kind::Barrier => match plan.step_of(source) {
                Some(step) => round.barrier.add(step),
                None => out.failures.push((vec![self.rank], no_step(source))),
            },
            Kind::Ack => round.acks += 1,
            Kind::Notified | Kind::Ticket => {}
        }
    }

    /// Takes in a put that a ticket has let land.
    #[cold] // Out of the way of arrivals from this process.
    fn take_by_ticket(
        &mut self,
        sender: &Sender,
        source: Rank,
        number: TicketNumber,
        out: &mut Deferred,
    ) {
        let most_ahead = self.limits.most_ahead;
        match sender.own.windows.end_ticket(number, source, TicketEnd::Used) {
            Some((lane, number)) => {
                let state = self.lane(lane);
                let first = state.arrivals.first();
                let Some(arrivals) = state.arrivals.round(number) else {
                    let ahead =
                        Error::check_ahead(lane, (source, number), (self.rank, first), most_ahead);
                    out.failures.extend(ahead.err().map(|error| (vec![self.rank, source], error)));
                    return;
                };
                take_data(sender, arrivals, (lane, number), (source, 1));
                // A sync that has had all its arrivals does not count them again.
                let closing = |sync: &&ActiveSync| {
                    sync.round.number == number && sync.stage == Stage::Closing
                };
                if let Some(sync) = state.syncs.front().filter(closing)
                    && arrivals.total > sync.expected
                {
                    let (arrived, expected) = (arrivals.total, sync.expected);
                    let (round, source_rank) = (number, source);
                    let error =
                        Error::UnexpectedArrivals { lane, round, source_rank, arrived, expected };
                    out.failures.push((vec![self.rank, source], error));
                }
            }
            None => out.failures.push((vec![self.rank], not_by_ticket(source, number))),
        }
    }

    /// Takes in eager puts or an atomic, which this rank has carried out; `None` if a peer sent the message.
    #[cold] // Out of the way of arrivals from this process.
    fn take_eager(
        &self,
        sender: &Sender,
        writer: Rank,
        eager: EagerArrival,
    ) -> Option<EagerArrival> {
        if writer != self.rank || eager.source.0 >= self.ranks {
            return None;
        }
        let peer = sender.peers.remote(eager.source)?;
        if !eager.is_atomic() && peer.note_eager_arrival(self.rank, eager.puts) {
            // A sync may wait in vain for more: that is known once these count.
            sender.own.ring_doorbell();
        }
        Some(eager)
    }

    /// Takes in the completions of operations, whose guards return.
    pub(super) fn take_completions(&mut self, sender: &Sender, out: &mut Deferred) -> usize {
        if sender.own.endpoint.sent.is_empty() {
            return 0;
        }
        let mut batch = std::mem::take(&mut self.batch);
        let mut taken = 0;
        loop {
            let count = sender.own.endpoint.sent.poll(&mut batch);
            for completion in &batch[..count] {
                let peer = sender.own.endpoint.rank_of(completion.queue_pair).unwrap_or(self.rank);
                let needs_nothing = || sender.peers.is_finished(peer);
                let result = match completion.status {
                    CompletionStatus::Success => Ok(()),
                    CompletionStatus::RetryExceeded if needs_nothing() => Ok(()),
                    status => Err(failed(peer, status)),
                };
                if let Err(error) = &result {
                    out.failures.push((vec![self.rank], error.clone()));
                }
                if completion.wr_id != NOBODY
                    && let Some(done) = sender.pending.take(completion.wr_id)
                {
                    out.done.push((done, result));
                }
            }
            taken += count;
            if count < batch.len() || taken >= self.limits.max_polling {
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
        self.unsent_controls.push_back(Control { target, immediate, payload, called_ns: 0 });
    }

    /// Returns `true` if no control message waits for room in a send queue.
    pub(super) fn has_sent_controls(&self) -> bool {
        self.unsent_controls.is_empty()
    }

    /// Sends control messages in order, as far as the send queues have room.
    pub(super) fn send_controls(&mut self, sender: &Sender, out: &mut Deferred) {
        let plan = self.plan;
        while let Some(control) = self.unsent_controls.front_mut() {
            if control.called_ns == 0 {
                control.called_ns = sender.tracer.control_clock();
            }
            let request = Operation::SendWithImmediate { immediate: control.immediate.to_bits() };
            let payload = control.payload.to_ne_bytes();
            match sender.own.endpoint.post_inline(control.target, request, &payload) {
                Ok(()) if control.called_ns == 0 => {}
                Ok(()) => {
                    let Control { target, immediate, called_ns, .. } = *control;
                    if let Some(kind) = traced_kind(immediate.kind, || plan.meets(target)) {
                        sender.tracer.control_sent(target, kind, called_ns);
                    }
                }
                Err(PostError { reason: reason @ DeviceError::LimitExceeded { .. }, .. }) => {
                    out.failures.push((vec![self.rank], Error::Device(reason)));
                }
                Err(_) => return,
            }
            out.to_notify.add(control.target);
            self.unsent_controls.pop_front();
        }
    }
}

/// Counts operations of a source that have arrived in a round.
#[inline]
fn take_data(
    sender: &Sender,
    arrivals: &mut RoundArrivals,
    (lane, round): (LaneNumber, Round),
    (source, count): (Rank, u32),
) {
    let from_source = &mut arrivals.data[source.index()];
    *from_source = from_source.saturating_add(count);
    arrivals.total = arrivals.total.saturating_add(count);
    if sender.tracer.is_traced() {
        for _ in 0..count {
            arrivals.last_ns = sender.tracer.arrival(source, lane, round);
        }
    }
}

/// Returns the kind under which a control message is traced; `None` for the notice of an operation. A count
/// is a step of an exchange if that `is_step`.
fn traced_kind(kind: Kind, is_step: impl FnOnce() -> bool) -> Option<MessageKind> {
    match kind {
        Kind::Count if is_step() => Some(MessageKind::ExchangeStep),
        Kind::Count => Some(MessageKind::Count),
        Kind::Barrier => Some(MessageKind::BarrierStep),
        Kind::Ack => Some(MessageKind::Acknowledgement),
        Kind::Data | Kind::Granted | Kind::Eager | Kind::Notified | Kind::Ticket => None,
    }
}

/// Takes in an operation outside rounds, which `writer` has written.
#[inline(never)]
fn take_notified(sender: &Sender, writer: Rank, number: ArrivalNumber, out: &mut Deferred) {
    let here = sender.rank();
    sender.peers.note_granted_arrival(writer, here);
    let arrived =
        sender.own.notifications.arrive(number, writer, out.notified.get_or_insert_default());
    let Some(Notification { source, id, .. }) = arrived else {
        // After a failure of the run it is not known any more.
        return out.failures.push((vec![here], no_notification(writer)));
    };
    if writer != source
        && let Some(peer) = sender.peers.remote(source)
        && peer.note_eager_arrival(here, 1)
    {
        sender.own.ring_doorbell();
    }
    if sender.tracer.is_traced() {
        sender.tracer.arrival_outside_rounds(source, id);
    }
}

#[cold]
fn of_nobody(here: Rank) -> Error {
    let status = "an arrival over a queue pair to no rank".to_owned();
    Error::WorkRequest { peer: here, status }
}

#[cold]
fn no_notification(rank: Rank) -> Error {
    let what = "a notification that this rank has not let land".to_owned();
    Error::BadControlMessage { rank, what }
}

#[cold]
fn failed(peer: Rank, status: CompletionStatus) -> Error {
    Error::WorkRequest { peer, status: format!("{status:?}") }
}

#[cold]
fn no_step(rank: Rank) -> Error {
    let what = "a barrier message for which this rank has no step".to_owned();
    Error::BadControlMessage { rank, what }
}

#[cold]
fn not_eager(rank: Rank) -> Error {
    let what = "a notice of a put that it did not carry".to_owned();
    Error::BadControlMessage { rank, what }
}

#[cold]
fn not_by_ticket(rank: Rank, number: TicketNumber) -> Error {
    Error::BadControlMessage { rank, what: format!("a put by {}", no_ticket(number)) }
}

#[cold]
fn too_late(source_rank: Rank, lane: LaneNumber, round: Round) -> Error {
    Error::UnexpectedArrivals { lane, round, source_rank, arrived: 1, expected: 0 }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use ibverbs_sim::{
        Connection, Payload, QueuePairInit, ReceiveWorkRequest, SendFlags, SendWorkRequest,
    };

    use super::*;
    use crate::config::Config;
    use crate::exec::exec;
    use crate::sync::SyncMode;

    #[test]
    fn an_arrival_over_a_queue_pair_to_no_rank_fails_the_run() {
        let ends = exec(Config { ranks: 1, ..Config::default() }, async |ctx| {
            let endpoint = &ctx.sender().own.endpoint;
            let sent = endpoint.context.create_completion_queue(1, None).unwrap();
            let init =
                QueuePairInit { max_send_wr: 1, ..QueuePairInit::new(&sent, &endpoint.arrived) };
            let stranger = endpoint.domain.create_queue_pair(&init).unwrap();
            stranger.connect(stranger.number(), &Connection::default()).unwrap();
            stranger.post_receive(&[ReceiveWorkRequest { wr_id: 0, scatter: &[] }]).unwrap();
            let operation = Operation::SendWithImmediate { immediate: 0 };
            let (payload, flags) = (Payload::Inline(&[]), SendFlags::NONE);
            let request = SendWorkRequest { wr_id: NOBODY, operation, payload, flags };
            stranger.post_send(&[request]).unwrap();
            ctx.sync(SyncMode::DEFAULT).await
        });
        assert_eq!(ends.unwrap_err().to_string(), of_nobody(Rank(0)).to_string());
    }
}
