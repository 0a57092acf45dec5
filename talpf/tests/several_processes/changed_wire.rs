//! A wire over sockets of which a test changes what it needs. It has no event: whoever uses it polls.

use ibverbs_sim::{SocketWire, Wire};

/// The changes to a wire.
pub(crate) trait Changes: Send + Sync + 'static {
    fn before_send(&self, packet: &[u8]) {
        let _ = packet;
    }

    fn poll(&self, wire: &SocketWire, sink: &mut dyn FnMut(u32, &[u8])) {
        wire.poll(sink);
    }

    fn is_lost(&self, wire: &SocketWire, process: u32) -> bool {
        wire.is_lost(process)
    }
}

/// No change.
impl Changes for () {}

/// A wire, and the changes to it, which drop before it closes.
pub(crate) struct ChangedWire<C> {
    changes: C,
    wire: SocketWire,
}

impl<C: Changes> ChangedWire<C> {
    pub(crate) fn new(wire: SocketWire, changes: C) -> Self {
        Self { changes, wire }
    }
}

impl<C: Changes> Wire for ChangedWire<C> {
    fn process(&self) -> u32 {
        self.wire.process()
    }

    fn processes(&self) -> u32 {
        self.wire.processes()
    }

    fn send(&self, to: u32, packet: Vec<u8>) {
        self.changes.before_send(&packet);
        self.wire.send(to, packet);
    }

    fn poll(&self, sink: &mut dyn FnMut(u32, &[u8])) {
        self.changes.poll(&self.wire, sink);
    }

    fn has_unsent(&self) -> bool {
        self.wire.has_unsent()
    }

    fn unsent_bytes(&self, to: u32) -> usize {
        self.wire.unsent_bytes(to)
    }

    fn is_lost(&self, process: u32) -> bool {
        self.changes.is_lost(&self.wire, process)
    }

    fn give_up(&self, process: u32) {
        self.wire.give_up(process);
    }
}
