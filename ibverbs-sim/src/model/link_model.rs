//! The figures of a machine's links.

use super::quantity::{Factor, Span};
use super::route::{Packets, Route};
use crate::random::Random;

/// The figures of a machine's links: the price of a message between any two processes.
///
/// Processes are numbered from 0 and fill nodes in order; nodes fill the rows of a mesh in order.
/// **Units**: times are integer nanoseconds, each rounded up.
///
/// ```
/// use ibverbs_sim::LinkModel;
///
/// let link = LinkModel::parse("latency=2us,bandwidth=10GB/s")?;
/// assert_eq!(link.one_way_ns(0, 1, 1_000), 2_100);
/// let mppa = LinkModel::profile("mppa-cc")?;
/// assert_eq!(mppa.one_way_ns(0, 15, 0), 78_575); // 31430 cycles of 2.5 ns
/// # Ok::<(), ibverbs_sim::LinkModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkModel {
    /// The way between nodes.
    pub(super) between: Route,
    /// Ways that differ, by node; a later one goes before an earlier one.
    pub(super) exceptions: Vec<Exception>,
    /// The way inside a node, through its memory.
    pub(super) inside: Option<Route>,
    pub(super) packets: Packets,
    /// Bytes that a port keeps for each hop while the receiver takes nothing.
    pub(super) buffer: Option<u64>,
    /// Processes of a node.
    pub(super) node: u32,
    /// Columns and rows of nodes.
    pub(super) mesh: Option<(u32, u32)>,
    /// Time of each hop of the mesh.
    pub(super) hop: Span,
    /// Largest time by which a message is late at random.
    pub(super) noise: Span,
    /// Seed of these times.
    pub(super) seed: u64,
}

/// A way between some nodes that differs from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exception {
    pub(super) from: Option<u32>,
    pub(super) to: Option<u32>,
    pub(super) route: Route,
}

impl LinkModel {
    /// The model of links that cost nothing.
    pub const IDEAL: Self = LinkModel {
        between: Route::FREE,
        exceptions: Vec::new(),
        inside: None,
        packets: Packets { size: 0, first_header: 0, header: 0 },
        buffer: None,
        node: 1,
        mesh: None,
        hop: Span::ZERO,
        noise: Span::ZERO,
        seed: 0,
    };

    /// Returns the model of links on which everything takes `factor` times as long, exact to a millionth.
    pub fn slowed(&self, factor: f64) -> Self {
        let factor = Factor::new(factor);
        let exceptions = self.exceptions.iter();
        let slowed = |one: &Exception| Exception { route: one.route.slowed(factor), ..*one };
        Self {
            between: self.between.slowed(factor),
            exceptions: exceptions.map(slowed).collect(),
            inside: self.inside.as_ref().map(|inside| inside.slowed(factor)),
            hop: self.hop.times(factor),
            noise: self.noise.times(factor),
            ..self.clone()
        }
    }

    /// Returns the node of a process.
    pub fn node_of(&self, process: u32) -> u32 {
        process / self.node
    }

    /// Returns the number of hops between the nodes of two processes; 1 between any two nodes
    /// without a mesh.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        let (from, to) = (self.node_of(from), self.node_of(to));
        match self.mesh {
            Some((columns, _)) => {
                let distance = |a: u32, b: u32| a.abs_diff(b);
                distance(from % columns, to % columns) + distance(from / columns, to / columns)
            }
            None => u32::from(from != to),
        }
    }

    /// Returns the number of packets of a message, and its bytes with all headers.
    pub fn packets(&self, bytes: u64) -> (u64, u64) {
        self.packets.of(bytes)
    }

    /// Returns the time from the post of a message until it has arrived, if it meets no other, without
    /// noise.
    pub fn one_way_ns(&self, from: u32, to: u32, bytes: u64) -> u64 {
        let route = self.route(from, to);
        let (_, wire) = self.packets(bytes);
        let stages = [
            route.send_overhead.ns(),
            self.latency_ns(from, to),
            route.transfer_ns(bytes, wire),
            route.receive_overhead.ns(),
        ];
        stages.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the time by which the message with this number is late at random.
    pub(super) fn noise_ns(&self, message: u64) -> u64 {
        match self.noise.ns() {
            0 => 0,
            most_ns => {
                let mixed = Random::new(message).next_u64();
                Random::new(self.seed ^ mixed).next_u64() % (most_ns + 1)
            }
        }
    }

    /// Returns the most processes that the mesh has room for.
    pub fn most_processes(&self) -> Option<u64> {
        self.mesh.map(|(columns, rows)| u64::from(columns) * u64::from(rows) * u64::from(self.node))
    }

    /// Returns `true` if a message stays inside a node and goes through its memory.
    pub(super) fn is_inside(&self, from: u32, to: u32) -> bool {
        self.inside.is_some() && self.node_of(from) == self.node_of(to)
    }

    /// Returns the figures of the way between two processes.
    pub(super) fn route(&self, from: u32, to: u32) -> &Route {
        let (from, to) = (self.node_of(from), self.node_of(to));
        if let Some(inside) = self.inside.as_ref().filter(|_| from == to) {
            return inside;
        }
        let applies = |side: Option<u32>, node| side.is_none_or(|side| side == node);
        let mut exceptions = self.exceptions.iter().rev();
        let found = exceptions.find(|one| applies(one.from, from) && applies(one.to, to));
        found.map_or(&self.between, |exception| &exception.route)
    }

    /// Returns the time from the first byte's leaving one port to its reaching the other.
    pub(super) fn latency_ns(&self, from: u32, to: u32) -> u64 {
        let hops = u64::from(self.hops(from, to));
        self.route(from, to).latency.plus(self.hop, hops).ns()
    }
}
