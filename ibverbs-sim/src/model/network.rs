//! The state machine that carries messages as a link model says.
//!
//! Each message passes queues in which it may wait for others: the overhead of the sending process,
//! the port of its node, the port of the receiving node, the overhead of the receiving process; or
//! the memory of a node in place of both ports. Each queue serves one message at a time in the order
//! in which they come, so two messages of one pair of processes never overtake each other.
//!
//! Whatever happens at one time happens in the order in which it was scheduled. The state is linear
//! in processes and in messages under way; there is none for a pair.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::link_model::LinkModel;

/// Number of a message, in the order of the posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

/// A message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message.
    pub message: MessageId,
    /// Process that has posted it.
    pub from: u32,
    /// Process at which it has arrived.
    pub to: u32,
    /// Bytes without headers.
    pub bytes: u64,
    /// Time of the arrival.
    pub at_ns: u64,
}

/// A message that holds a port, since the receiver takes nothing and the buffers are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldMessage {
    /// The message.
    pub message: MessageId,
    /// Process that has posted it.
    pub from: u32,
    /// Process that does not receive it.
    pub to: u32,
    /// Bytes without headers.
    pub bytes: u64,
}

/// Messages under way between processes. See the module.
///
/// The caller says what time it is, and never goes back: a network neither reads a clock nor waits.
///
/// ```
/// use ibverbs_sim::{LinkModel, Network};
///
/// let mut network = Network::new(LinkModel::parse("latency=2us,bandwidth=10GB/s")?, 2);
/// network.post(0, 0, 1, 1_000);
/// network.post(0, 0, 1, 1_000);
/// let mut arrivals = Vec::new();
/// while let Some(next_ns) = network.next_ns() {
///     network.advance(next_ns, |delivery| arrivals.push(delivery.at_ns));
/// }
/// assert_eq!(arrivals, [2_100, 2_200]); // The port of the sender sends one after the other.
/// # Ok::<(), ibverbs_sim::LinkModelError>(())
/// ```
#[derive(Debug)]
pub struct Network {
    model: LinkModel,
    processes: Vec<Process>,
    nodes: Vec<NodeQueues>,
    messages: Vec<Message>,
    /// Unused entries of `messages`.
    free: Vec<usize>,
    events: BinaryHeap<Reverse<Event>>,
    scheduled: u64,
    posted: u64,
}

/// Queues of a process.
#[derive(Debug, Default)]
struct Process {
    /// Times until which its overheads keep it busy.
    sends_until_ns: u64,
    receives_until_ns: u64,
    /// `true` while the process receives nothing.
    is_closed: bool,
}

/// Queues of a node.
#[derive(Debug, Default)]
struct NodeQueues {
    sending: Queue,
    receiving: Queue,
    memory: Queue,
    /// Bytes that wait at the port until it is free to receive them.
    buffered: u64,
}

/// Messages that wait for a port or a memory, and the one that it serves.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<usize>,
    is_busy: bool,
}

#[derive(Debug)]
struct Message {
    id: MessageId,
    from: u32,
    to: u32,
    bytes: u64,
    /// Bytes with headers.
    wire: u64,
    /// State of the sending port, which buffers may let go before the message is received.
    port: Port,
    arrival: Arrival,
    /// Number of its events that have not happened.
    events: u8,
}

/// Progress of a message at the port that receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// The first byte is on the way.
    OnTheWay,
    /// The first bytes wait in the buffers.
    Waits,
    /// The port takes the bytes, or has taken them.
    Taken,
    /// The message has arrived.
    Ended,
}

/// Hold of a message on the port that sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    /// The bytes are leaving.
    Sends,
    /// All bytes would have left, and the buffers are full.
    Holds,
    /// The port is free for the next message.
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at_ns: u64,
    number: u64,
    message: usize,
    stage: Stage,
}

/// End of a stage of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// The sender's overhead is over.
    Posted,
    /// The sending port has sent the last byte, and its gap is over.
    Sent,
    /// The port that was held is free.
    LetGo,
    /// The first byte has reached the receiving port.
    Reached,
    /// The last byte has left the receiving port.
    Received,
    /// The gap of the receiving port is over.
    Rested,
    /// The memory has copied the last byte.
    Copied,
    /// The gap of the memory is over.
    MemoryRested,
    /// The receiver's overhead is over.
    Arrived,
}

impl Network {
    /// Creates the network of `processes`, on which no message is under way.
    pub fn new(model: LinkModel, processes: u32) -> Self {
        let nodes = processes.div_ceil(model.node);
        Network {
            processes: (0..processes).map(|_| Process::default()).collect(),
            nodes: (0..nodes).map(|_| NodeQueues::default()).collect(),
            model,
            messages: Vec::new(),
            free: Vec::new(),
            events: BinaryHeap::new(),
            scheduled: 0,
            posted: 0,
        }
    }

    /// Makes room for as many processes, if there are fewer.
    pub fn admit(&mut self, processes: u32) {
        let nodes = processes.div_ceil(self.model.node) as usize;
        let processes = processes as usize;
        if processes > self.processes.len() {
            self.processes.resize_with(processes, Process::default);
            self.nodes.resize_with(nodes, NodeQueues::default);
        }
    }

    /// Returns the model.
    pub fn model(&self) -> &LinkModel {
        &self.model
    }

    /// Posts a message of `bytes`. Posts do not go back in time, and what is due before was
    /// advanced.
    ///
    /// **Panics**: `from` or `to` is no process of the network.
    pub fn post(&mut self, now_ns: u64, from: u32, to: u32, bytes: u64) -> MessageId {
        assert!((to as usize) < self.processes.len(), "no process {to}");
        let id = MessageId(self.posted);
        self.posted += 1;
        let (_, wire) = self.model.packets(bytes);
        let message = Message {
            id,
            from,
            to,
            bytes,
            wire,
            port: Port::Sends,
            arrival: Arrival::OnTheWay,
            events: 0,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.messages[index] = message;
                index
            }
            None => {
                self.messages.push(message);
                self.messages.len() - 1
            }
        };
        let overhead_ns = self.model.route(from, to).send_overhead.ns();
        let overhead_ns = overhead_ns.saturating_add(self.model.noise_ns(id.0));
        let until_ns = &mut self.processes[from as usize].sends_until_ns;
        *until_ns = now_ns.max(*until_ns).saturating_add(overhead_ns);
        let at_ns = *until_ns;
        self.schedule(at_ns, index, Stage::Posted);
        id
    }

    /// Returns the time at which something happens next, if nothing is posted before.
    pub fn next_ns(&self) -> Option<u64> {
        self.events.peek().map(|Reverse(event)| event.at_ns)
    }

    /// Lets everything happen that is due, and calls `deliver` with each message that arrives.
    pub fn advance(&mut self, now_ns: u64, mut deliver: impl FnMut(Delivery)) {
        while let Some(&Reverse(event)) = self.events.peek()
            && event.at_ns <= now_ns
        {
            self.events.pop();
            let delivery = self.happen(event);
            let message = &mut self.messages[event.message];
            message.events -= 1;
            // The gap of a port may end after the arrival.
            if message.events == 0 && message.arrival == Arrival::Ended {
                self.free.push(event.message);
            }
            delivery.into_iter().for_each(&mut deliver);
        }
    }

    /// Lets a process receive nothing until it is opened again: its messages wait in the buffers on
    /// the way, and then hold the ports of their senders.
    pub fn close(&mut self, process: u32) {
        self.processes[process as usize].is_closed = true;
    }

    /// Lets a process receive again.
    pub fn open(&mut self, now_ns: u64, process: u32) {
        self.processes[process as usize].is_closed = false;
        self.receive_next(now_ns, self.model.node_of(process) as usize);
    }

    /// Returns `true` once the bytes of a message have left the port of its sender.
    pub fn has_left(&self, message: MessageId) -> bool {
        let mut under_way = self.under_way();
        under_way.find(|found| found.id == message).is_none_or(|found| found.port == Port::Left)
    }

    /// Returns the messages that hold a port since the receiver takes nothing. If nothing happens
    /// next and there are any, they are in a deadlock unless somebody opens.
    pub fn held(&self) -> Vec<HeldMessage> {
        let held = self.under_way().filter(|message| message.port == Port::Holds);
        let held = held.map(|&Message { id: message, from, to, bytes, .. }| HeldMessage {
            message,
            from,
            to,
            bytes,
        });
        held.collect()
    }

    fn under_way(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(|message| message.arrival != Arrival::Ended)
    }

    fn schedule(&mut self, at_ns: u64, message: usize, stage: Stage) {
        let event = Event { at_ns, number: self.scheduled, message, stage };
        self.scheduled += 1;
        self.messages[message].events += 1;
        self.events.push(Reverse(event));
    }

    fn happen(&mut self, event: Event) -> Option<Delivery> {
        let Event { at_ns, message: index, stage, .. } = event;
        let message = &self.messages[index];
        let (from, to) = (message.from, message.to);
        let [source, target] = [from, to].map(|process| self.model.node_of(process) as usize);
        match stage {
            Stage::Posted if self.model.is_inside(from, to) => {
                self.nodes[source].memory.waiting.push_back(index);
                self.copy_next(at_ns, source);
            }
            Stage::Posted => {
                self.nodes[source].sending.waiting.push_back(index);
                self.send_next(at_ns, source);
            }
            Stage::Sent if !self.fits(index) => self.messages[index].port = Port::Holds,
            Stage::Sent | Stage::LetGo => self.leave_port(at_ns, index, source),
            Stage::Reached => {
                self.messages[index].arrival = Arrival::Waits;
                self.nodes[target].buffered += self.messages[index].wire;
                self.nodes[target].receiving.waiting.push_back(index);
                self.receive_next(at_ns, target);
            }
            Stage::Copied => {
                self.messages[index].port = Port::Left;
                let latency_ns = self.model.latency_ns(from, to);
                self.receive_overhead(at_ns.saturating_add(latency_ns), index);
            }
            Stage::MemoryRested => {
                self.nodes[target].memory.is_busy = false;
                self.copy_next(at_ns, target);
            }
            Stage::Received => self.receive_overhead(at_ns, index),
            Stage::Rested => {
                self.nodes[target].receiving.is_busy = false;
                self.receive_next(at_ns, target);
            }
            Stage::Arrived => {
                let &Message { id: message, from, to, bytes, .. } = message;
                self.messages[index].arrival = Arrival::Ended;
                return Some(Delivery { message, from, to, bytes, at_ns });
            }
        }
        None
    }

    /// Begins to send the next message of a node, if its port is free.
    fn send_next(&mut self, now_ns: u64, node: usize) {
        let queue = &mut self.nodes[node].sending;
        if queue.is_busy {
            return;
        }
        let Some(index) = queue.waiting.pop_front() else { return };
        queue.is_busy = true;
        let Message { from, to, .. } = self.messages[index];
        let latency_ns = self.model.latency_ns(from, to);
        let busy_ns = self.transfer_ns(index).max(self.model.route(from, to).gap.ns());
        self.schedule(now_ns.saturating_add(latency_ns), index, Stage::Reached);
        self.schedule(now_ns.saturating_add(busy_ns), index, Stage::Sent);
    }

    fn leave_port(&mut self, now_ns: u64, index: usize, node: usize) {
        self.messages[index].port = Port::Left;
        self.nodes[node].sending.is_busy = false;
        self.send_next(now_ns, node);
    }

    /// Begins to receive the next message of a node, if its port is free and the process receives.
    fn receive_next(&mut self, now_ns: u64, node: usize) {
        let queue = &self.nodes[node].receiving;
        if queue.is_busy {
            return;
        }
        let Some(&index) = queue.waiting.front() else { return };
        let Message { from, to, bytes, wire, port, .. } = self.messages[index];
        if self.processes[to as usize].is_closed {
            return;
        }
        let target = &mut self.nodes[node];
        target.receiving.waiting.pop_front();
        target.receiving.is_busy = true;
        target.buffered -= wire;
        self.messages[index].arrival = Arrival::Taken;
        let transfer_ns = self.transfer_ns(index);
        let gap_ns = self.model.route(from, to).gap.ns();
        if port == Port::Holds {
            // The port sends what the buffers do not hold.
            let rest = wire.saturating_sub(self.buffer(from, to));
            let rest_ns = self.model.route(from, to).transfer_ns(bytes, rest);
            self.schedule(now_ns.saturating_add(rest_ns), index, Stage::LetGo);
        }
        self.schedule(now_ns.saturating_add(transfer_ns), index, Stage::Received);
        self.schedule(now_ns.saturating_add(transfer_ns.max(gap_ns)), index, Stage::Rested);
    }

    /// Begins the next copy inside a node, if its memory is free.
    fn copy_next(&mut self, now_ns: u64, node: usize) {
        let queue = &mut self.nodes[node].memory;
        if queue.is_busy {
            return;
        }
        let Some(index) = queue.waiting.pop_front() else { return };
        queue.is_busy = true;
        let Message { from, to, .. } = self.messages[index];
        let transfer_ns = self.transfer_ns(index);
        let gap_ns = self.model.route(from, to).gap.ns();
        self.schedule(now_ns.saturating_add(transfer_ns), index, Stage::Copied);
        self.schedule(now_ns.saturating_add(transfer_ns.max(gap_ns)), index, Stage::MemoryRested);
    }

    fn receive_overhead(&mut self, now_ns: u64, index: usize) {
        let Message { from, to, .. } = self.messages[index];
        let overhead_ns = self.model.route(from, to).receive_overhead.ns();
        let until_ns = &mut self.processes[to as usize].receives_until_ns;
        *until_ns = now_ns.max(*until_ns).saturating_add(overhead_ns);
        let at_ns = *until_ns;
        self.schedule(at_ns, index, Stage::Arrived);
    }

    fn transfer_ns(&self, index: usize) -> u64 {
        let Message { from, to, bytes, wire, .. } = self.messages[index];
        self.model.route(from, to).transfer_ns(bytes, wire)
    }

    /// Returns the bytes that the buffers between two processes hold.
    fn buffer(&self, from: u32, to: u32) -> u64 {
        let hops = u64::from(self.model.hops(from, to)).max(1);
        self.model.buffer.map_or(u64::MAX, |bytes| bytes.saturating_mul(hops))
    }

    /// Returns `true` if a message whose last byte is due to leave its port may: it is received, or
    /// the buffers hold it beside those that wait there.
    fn fits(&self, index: usize) -> bool {
        let Message { from, to, wire, arrival, .. } = self.messages[index];
        let buffered = self.nodes[self.model.node_of(to) as usize].buffered;
        let has_room = |bytes: u64| bytes <= self.buffer(from, to);
        match arrival {
            Arrival::Taken | Arrival::Ended => true,
            Arrival::Waits => has_room(buffered),
            Arrival::OnTheWay if self.processes[to as usize].is_closed => {
                has_room(buffered.saturating_add(wire))
            }
            Arrival::OnTheWay => true,
        }
    }
}
