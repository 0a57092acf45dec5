//! State machine that carries out the schedule of one collective at one rank, driven by the ends of
//! its messages.
//!
//! No thread waits in here. The thread that starts the collective runs its steps up to the first
//! wait; the thread that ends the last message under way, mostly that of a polling task, runs them
//! up to the next wait ([`trampoline`](super::trampoline)).
//! `under_way` counts the messages, and one for the thread that runs steps: so exactly one thread
//! finds that it was the last. That thread takes the state out while it works on it, and so holds
//! no lock while it sends or calls the program's operator.
//!
//! In debug builds rank 0 also compares the calls of all ranks.
#![allow(unsafe_code, reason = "starts messages on memory that the machine keeps")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use talpf_primitives::Mutex;
use talpf_runtime::ByteLayout;

use super::call::{Call, CallWords, CollectiveKind, DisplayCall};
use super::memory::Operands;
use super::schedule::{Schedule, ScheduleStep, Span};
use super::trampoline::{Continue, resume_on_trampoline};
use crate::communicator::{Communicator, Traffic};
use crate::error::Error;
use crate::foreign::call;
use crate::rank::Rank;
use crate::select::Select;
use crate::status::Status;
use crate::tag::Tag;
use crate::ticket::{Ticket, ticket, unpacked};
use crate::transport::{OperationId, Outgoing, Peer, SendMode, Start, Wanted};

/// Collective under way at one rank.
///
/// The state is small, whatever the collective does: one worker allocates it and often another frees it,
/// and allocators hand longer blocks back under a lock.
struct Machine {
    communicator: Communicator,
    kind: CollectiveKind,
    /// Tag of all messages of the collective.
    tag: Tag,
    /// Number of messages under way, and one for the thread that runs steps.
    under_way: AtomicUsize,
    progress: Mutex<Progress>,
}

// With the two counts of its `Arc`, 120 bytes: blocks that glibc hands from thread to thread without a lock.
#[cfg(not(talpf_loom))] // Its locks are longer.
const _: () = assert!(size_of::<Machine>() <= 104);

struct Progress {
    /// The first error.
    failure: Option<Box<Error>>,
    /// `None` while a thread works on it, and after the end.
    state: Option<State>,
}

struct State {
    schedule: Schedule,
    /// Index of the next step.
    next: usize,
    /// `None` for a collective without data.
    operands: Option<Box<dyn Operands>>,
    ticket: Option<Ticket>,
}

impl State {
    /// Describes a span for a transport.
    fn layout(&self, span: Span) -> ByteLayout {
        let operands = self.operands.as_ref();
        operands.map_or_else(ByteLayout::of_nothing, |operands| operands.layout(span))
    }
}

/// Starts a collective over `operands`, which are used until the collective has ended.
pub(super) fn start(
    communicator: &Communicator,
    call: Call,
    schedule: Schedule,
    operands: Option<Box<dyn Operands>>,
) -> Start {
    let (ticket, awaited) = ticket();
    let element = operands.as_ref().map_or(0, |operands| operands.element_bytes());
    let state = State { schedule, next: 0, operands, ticket: Some(ticket) };
    let machine = Arc::new(Machine {
        communicator: communicator.clone(),
        kind: call.kind,
        tag: communicator.next_collective(),
        under_way: AtomicUsize::new(1),
        progress: Mutex::new(Progress { failure: None, state: Some(state) }),
    });
    if cfg!(debug_assertions) {
        machine.compare_calls(call.to_words(element));
    }
    resume_on_trampoline(machine);
    Start::UnderWay { awaited, operation: OperationId::NONE }
}

impl Continue for Machine {
    fn resume(self: Arc<Self>) {
        if !self.is_over() {
            self.run();
        }
    }
}

impl Machine {
    /// Runs steps until a wait or the end, for the thread that owns them, with no message under
    /// way.
    fn run(self: &Arc<Self>) {
        loop {
            self.run_to_wait();
            if !self.was_last() || self.is_over() {
                return;
            }
        }
    }

    /// Gives one unit of `under_way` back. Returns `true` if it was the last: the caller runs steps
    /// next.
    fn was_last(&self) -> bool {
        let was_last = self.under_way.fetch_sub(1, Ordering::AcqRel) == 1;
        if was_last {
            // No other thread refers to the machine.
            self.under_way.store(1, Ordering::Relaxed);
        }
        was_last
    }

    /// Runs the steps up to the next wait or the end.
    fn run_to_wait(self: &Arc<Self>) {
        let taken = self.progress.lock().state.take();
        let Some(mut state) = taken else { return };
        self.run_steps(&mut state);
        self.progress.lock().state = Some(state);
    }

    fn run_steps(self: &Arc<Self>, state: &mut State) {
        while let Some(step) = state.schedule.steps().get(state.next).copied() {
            state.next += 1;
            match step {
                ScheduleStep::Wait => return,
                ScheduleStep::Send { to, span } => self.send(to, state.layout(span)),
                ScheduleStep::Receive { from, span } => self.receive(from, state.layout(span)),
                ScheduleStep::Copy { from, to } => {
                    state.operands.iter_mut().for_each(|operands| operands.copy(from, to));
                }
                ScheduleStep::FoldIntoLeft { left, right } => {
                    self.fold(state, |operands| operands.fold_into_left(left, right));
                }
                ScheduleStep::FoldIntoRight { left, right } => {
                    self.fold(state, |operands| operands.fold_into_right(left, right));
                }
            }
        }
    }

    /// Calls the program's operator. A panic of it is an error of the collective, not of the thread that
    /// ended a message.
    fn fold(&self, state: &mut State, fold: impl FnOnce(&mut dyn Operands)) {
        let Some(operands) = &mut state.operands else { return };
        if call("an operator", || fold(&mut **operands)).is_none() {
            self.fail(self.operator_panicked());
        }
    }

    fn operator_panicked(&self) -> Error {
        Error::OperatorPanicked { collective: self.kind.name() }
    }

    fn peer(&self, rank: usize) -> Option<Peer> {
        let peer = self.communicator.peer(Rank(rank as u32));
        peer.map_err(|error| self.fail(error)).ok()
    }

    fn send(self: &Arc<Self>, to: usize, bytes: ByteLayout) {
        let Some(destination) = self.peer(to) else { return };
        let message = Outgoing {
            context: self.communicator.context(Traffic::Collective),
            source: self.communicator.rank(),
            destination,
            tag: self.tag,
            mode: SendMode::Standard,
        };
        // SAFETY: the machine lives until the message has ended, and no step writes its span
        // before the schedule waits for it.
        let start = unsafe { self.communicator.transport().send(&message, bytes) };
        self.count(start, |machine, outcome| {
            if let Err(error) = outcome {
                machine.fail(error);
            }
        });
        self.communicator.transport().notify(destination.world);
    }

    fn receive(self: &Arc<Self>, from: usize, bytes: ByteLayout) {
        let Some(source) = self.peer(from) else { return };
        let wanted = Wanted {
            context: self.communicator.context(Traffic::Collective),
            source: Select::Only(source),
            tag: Select::Only(self.tag),
            is_awaited: false,
        };
        let expected = bytes.bytes();
        // SAFETY: the machine lives until the message has ended, and no step uses its span before
        // the schedule waits for it.
        let start = unsafe { self.communicator.transport().receive(&wanted, bytes) };
        self.count(start, move |machine, outcome| machine.received(source.rank, expected, outcome));
    }

    fn received(&self, source_rank: Rank, expected: u64, outcome: Result<Status, Error>) {
        let received = match outcome {
            Ok(Status { bytes, .. }) if bytes == expected => return,
            Ok(Status { bytes, .. }) => bytes,
            Err(Error::Truncated { sent, .. }) => sent,
            Err(error) => return self.fail(error),
        };
        let (collective, rank) = (self.kind.name(), self.communicator.rank());
        self.fail(Error::LengthMismatch { collective, rank, expected, source_rank, received });
    }

    /// Counts a message as under way until it has ended, and calls `ended` with its outcome.
    fn count(
        self: &Arc<Self>,
        start: Start,
        ended: impl FnOnce(&Self, Result<Status, Error>) + Send + 'static,
    ) {
        match start {
            Start::Ended(outcome) => ended(self, unpacked(outcome)),
            Start::Batched(status) => {
                self.communicator.transport().flush();
                ended(self, Ok(status.into()));
            }
            Start::UnderWay { awaited, .. } => {
                self.under_way.fetch_add(1, Ordering::Relaxed);
                let machine = Arc::clone(self);
                awaited.call(Box::new(move |outcome| {
                    ended(&machine, outcome);
                    machine.message_ended();
                }));
            }
        }
    }

    fn message_ended(self: &Arc<Self>) {
        if self.was_last() {
            resume_on_trampoline(Arc::clone(self) as _);
        }
    }

    /// Ends the collective if it has failed or no step is left, with no message of a step under way.
    /// Returns `true` if the collective is over.
    fn is_over(&self) -> bool {
        let (mut failure, taken) = {
            let mut progress = self.progress.lock();
            let steps_left = |state: &State| state.next < state.schedule.steps().len();
            if progress.failure.is_none() && progress.state.as_ref().is_some_and(steps_left) {
                return false;
            }
            (progress.failure.take(), progress.state.take())
        };
        let Some(State { mut operands, ticket, .. }) = taken else { return true };
        if failure.is_none() {
            operands.iter_mut().for_each(|operands| operands.unpack());
        }
        // The captures of the program's operator drop here, before its call ends.
        if call("the drop of an operator", || drop(operands)).is_none() {
            failure = failure.or_else(|| Some(Box::new(self.operator_panicked())));
        }
        let (source, tag) = (self.communicator.rank(), self.tag);
        let status = Status::new(source, tag, 0);
        if let Some(ticket) = ticket {
            ticket.complete(failure.map_or(Ok(status), |error| Err(*error)));
        }
        true
    }

    /// Records the first error. An error that only this rank knows of fails all ranks: the others
    /// would wait for messages that it does not send.
    fn fail(&self, error: Error) {
        let is_news = !matches!(error, Error::PeerFailed { .. });
        let reason = if is_news { error.to_string() } else { String::new() };
        self.progress.lock().failure.get_or_insert_with(|| Box::new(error));
        if is_news {
            self.communicator.transport().fail(&reason);
        }
    }

    /// Sends the call to rank 0, which compares it with its own.
    fn compare_calls(self: &Arc<Self>, words: CallWords) {
        let (tag, traffic) = (self.tag, Traffic::Collective);
        if self.communicator.rank() != Rank(0) {
            let (buffer, mode) = (words.to_vec(), SendMode::Standard);
            // If it fails, so do the messages of the steps.
            drop(self.communicator.start_send(traffic, mode, buffer, Rank(0), tag));
            return;
        }
        for rank in (1..self.communicator.size()).map(Rank) {
            let (buffer, from) = (vec![0; words.len()], (Select::Only(rank), tag.into()));
            let request = self.communicator.start_receive(traffic, buffer, from, false);
            self.under_way.fetch_add(1, Ordering::Relaxed);
            let machine = Arc::clone(self);
            request.finish(move |there, _, outcome| {
                match outcome {
                    Err(error) => machine.fail(error),
                    Ok(_) if there == words => {}
                    Ok(_) => machine.fail(Error::CallMismatch {
                        here: DisplayCall(&words).to_string(),
                        rank,
                        there: DisplayCall(&there).to_string(),
                    }),
                }
                machine.message_ended();
            });
        }
    }
}
