//! A wire over sockets that a test makes behave otherwise. It has no event, so it must be polled.

use ibverbs_sim::{SocketWire, Wire};

/// The changes to a wire: each function is that of the wire unless a test has another one.
pub(crate) trait Changes: Send + Sync + 'static {
    /// Called before each packet is sent.
    fn before_send(&self, packet: &[u8]) {
        let _ = packet;
    }

    /// Replaces [`Wire::poll`].
    fn poll(&self, wire: &SocketWire, sink: &mut dyn FnMut(u32, &[u8])) {
        wire.poll(sink);
    }

    /// Replaces [`Wire::is_lost`].
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
