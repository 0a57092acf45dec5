//! A link whose messages take the time of a [`LinkModel`].
//!
//! A request enters the network as it is posted, and is carried out once its message has arrived:
//! data is read at the source, and lands, at that time. The response of a request that returns data
//! goes back as a message of its own. Other completions of a sender are there with the arrival:
//! acknowledgements take no time. With a clock, posts have the time of that; arrivals are carried out by the
//! next call that moves the time.
//!
//! A queue pair whose first request is under way is stalled, so that all further ones come by
//! [`PricedLink::queued`]; each of them has a place in the flow of its queue pair. The gate of a
//! queue pair may be held while the state here is locked, never the other way round.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, OnceLock, Weak},
};

use talpf_primitives::{Mutex, MutexGuard};

use crate::{
    LinkModel, MessageId, Network, Operation, Payload, QueuePairNumber, SendWorkRequest,
    deferred::Deferred,
    gate::GateHeld,
    link::{AttemptError, AttemptResult, Message},
    queue_pair::{LocalBuffer, QueuePairCore},
};

/// Requests under way on a link with a price.
pub(crate) struct PricedLink {
    /// `true` if data is not copied.
    phantom: bool,
    clock: OnceLock<LinkClock>,
    state: Mutex<State>,
}

/// Function that returns the time of a link, in nanoseconds.
pub(crate) type LinkClock = Box<dyn Fn() -> u64 + Send + Sync>;

/// The requesting and the responding process of a queue pair.
pub(crate) type Ends = (u32, u32);

struct State {
    now_ns: u64,
    network: Network,
    flows: HashMap<QueuePairNumber, Flow>,
    under_way: HashMap<MessageId, Request>,
}

/// Requests of a queue pair that were posted and not carried out, in order.
struct Flow {
    queue_pair: Weak<QueuePairCore>,
    from: u32,
    to: u32,
    /// Number of requests that were carried out.
    ended: u64,
    /// `true` for a request whose message, or whose response, has arrived.
    arrived: VecDeque<bool>,
}

/// A request of which a message is under way.
struct Request {
    of: QueuePairNumber,
    /// Place among all requests of its queue pair.
    number: u64,
    /// Bytes of the response that the message asks for.
    returns: Option<u64>,
}

impl PricedLink {
    pub(crate) fn new(model: LinkModel, phantom: bool) -> Self {
        let network = Network::new(model, 0);
        let (flows, under_way) = (HashMap::new(), HashMap::new());
        let state = Mutex::new(State { now_ns: 0, network, flows, under_way });
        PricedLink { phantom, clock: OnceLock::new(), state }
    }

    /// Gives the link a clock, unless it has one.
    pub(crate) fn follow(&self, clock: LinkClock) {
        let _ = self.clock.set(clock);
    }

    /// Returns the state, with the time of the clock if there is one.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        if let Some(clock) = self.clock.get() {
            state.now_ns = state.now_ns.max(clock());
        }
        state
    }

    /// Carries out the oldest request of a queue pair if it has arrived. Lets it enter the network
    /// if it has not done so.
    #[cold]
    pub(super) fn transmit(
        &self,
        peer: &QueuePairCore,
        message: &Message<'_>,
        held: GateHeld<'_>,
        deferred: &mut Deferred,
    ) -> AttemptResult {
        let mut state = self.state();
        let source = || peer.context.device.find(message.source);
        let Some(flow) = state.flow(message.source, peer, source) else {
            return Err(AttemptError::NoResponse);
        };
        match flow.arrived.front() {
            Some(true) => {}
            Some(false) => return Err(AttemptError::Busy),
            None => {
                state.post(message.source, message.operation, message.local.len());
                return Err(AttemptError::Busy);
            }
        }
        drop(state);
        let result = match message.local {
            LocalBuffer::Source(_) | LocalBuffer::Target(_) if self.phantom => {
                let local = &LocalBuffer::Delivered { length: message.local.len() };
                peer.respond(&Message { local, ..*message }, held, deferred)
            }
            _ => peer.respond(message, held, deferred),
        };
        let is_over = !matches!(result, Err(AttemptError::ReceiverNotReady { .. }));
        if is_over && let Some(flow) = self.state.lock().flows.get_mut(&message.source) {
            flow.ended += u64::from(flow.arrived.pop_front().is_some());
        }
        result
    }

    /// Lets requests of a stalled queue pair enter the network.
    #[cold]
    pub(crate) fn queued(&self, source: QueuePairNumber, requests: &[SendWorkRequest<'_>]) {
        let mut state = self.state();
        // Without a flow another thread is about to carry out the first request of the queue pair:
        // the others enter after that.
        if !state.flows.contains_key(&source) {
            return;
        }
        for request in requests {
            let bytes = match request.payload {
                Payload::Inline(bytes) => bytes.len() as u64,
                Payload::Gather(list) => list.iter().map(|piece| u64::from(piece.length)).sum(),
            };
            state.post(source, &request.operation, bytes);
        }
    }

    /// Returns the time at which something happens next on the link.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.state.lock().network.next_ns()
    }

    /// Moves the time of the link forward, to that of its clock if it has one.
    pub(crate) fn advance_in_real_time(&self) {
        if let Some(clock) = self.clock.get() {
            self.carry_out(clock(), |_, _| {});
        }
    }

    /// Moves the time of the link forward, and carries out the requests that arrive. Calls `carried_out` with
    /// their processes.
    pub(crate) fn carry_out(&self, now_ns: u64, mut carried_out: impl FnMut(u32, u32)) {
        let mut deferred = Deferred::default();
        let resumed = self.advance(now_ns);
        for (queue_pair, _) in &resumed {
            queue_pair.resume(&mut deferred);
        }
        deferred.run();
        resumed.into_iter().for_each(|(_, (from, to))| carried_out(from, to));
    }

    /// Moves the time of the link forward. Returns the queue pairs with requests that have arrived,
    /// and their processes.
    fn advance(&self, now_ns: u64) -> Vec<(Arc<QueuePairCore>, Ends)> {
        let mut resumed = Vec::new();
        let mut state = self.state.lock();
        state.now_ns = state.now_ns.max(now_ns);
        while state.network.next_ns().is_some_and(|next_ns| next_ns <= now_ns) {
            let mut arrived = Vec::new();
            state.network.advance(now_ns, |delivery| arrived.push(delivery));
            for delivery in arrived {
                resumed.extend(state.arrive(delivery.message));
            }
        }
        drop(state);
        resumed.iter().filter_map(|(pair, ends)| Some((pair.upgrade()?, *ends))).collect()
    }
}

impl State {
    /// Returns the flow of a queue pair, which its first request makes.
    fn flow(
        &mut self,
        number: QueuePairNumber,
        peer: &QueuePairCore,
        source: impl FnOnce() -> Option<Arc<QueuePairCore>>,
    ) -> Option<&mut Flow> {
        let is_known = |flow: &Flow| flow.queue_pair.strong_count() > 0;
        if !self.flows.get(&number).is_some_and(is_known) {
            let source = source()?;
            let [from, to] = [&source, peer].map(|end| end.context.process());
            self.network.admit(from.max(to) + 1);
            let (queue_pair, arrived) = (Arc::downgrade(&source), VecDeque::new());
            self.flows.insert(number, Flow { queue_pair, from, to, ended: 0, arrived });
        }
        self.flows.get_mut(&number)
    }

    /// Lets the next request of a queue pair with a flow enter the network.
    fn post(&mut self, of: QueuePairNumber, operation: &Operation, bytes: u64) {
        let Some(flow) = self.flows.get_mut(&of) else { return };
        let number = flow.ended + flow.arrived.len() as u64;
        flow.arrived.push_back(false);
        let (out, returns) = match operation {
            Operation::Read { .. } => (0, Some(bytes)),
            Operation::FetchAdd { .. } => (8, Some(bytes)),
            Operation::CompareSwap { .. } => (16, Some(bytes)),
            _ => (bytes, None),
        };
        let message = self.network.post(self.now_ns, flow.from, flow.to, out);
        self.under_way.insert(message, Request { of, number, returns });
    }

    /// Notes that a message has arrived. Returns the queue pair if its request may be carried out.
    fn arrive(&mut self, message: MessageId) -> Option<(Weak<QueuePairCore>, Ends)> {
        let Request { of, number, returns } = self.under_way.remove(&message)?;
        let flow = self.flows.get_mut(&of)?;
        if let Some(bytes) = returns {
            let response = self.network.post(self.now_ns, flow.to, flow.from, bytes);
            self.under_way.insert(response, Request { of, number, returns: None });
            return None;
        }
        let place = number.checked_sub(flow.ended)?;
        *flow.arrived.get_mut(place as usize)? = true;
        Some((Weak::clone(&flow.queue_pair), (flow.from, flow.to)))
    }
}
