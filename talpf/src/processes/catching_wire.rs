//! A wire that catches its panics, and keeps their text.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};

use ibverbs_sim::Wire;

use crate::foreign;

/// A wire whose panics lose all processes.
pub(crate) struct CatchingWire {
    wire: Arc<dyn Wire>,
    /// The text of the first panic of the wire.
    panic: OnceLock<String>,
}

impl CatchingWire {
    pub(crate) fn new(wire: Arc<dyn Wire>) -> Self {
        CatchingWire { wire, panic: OnceLock::new() }
    }

    /// Returns the text of the first panic of the wire, after which packets may be lost.
    pub(super) fn panic(&self) -> Option<&str> {
        self.panic.get().map(String::as_str)
    }

    /// Calls the wire, which takes none of the locks that a poster may hold. `None` if it panics.
    fn call<R>(&self, call: impl FnOnce(&dyn Wire) -> R) -> Option<R> {
        let called = foreign::catch(|| call(&*self.wire));
        called.map_err(|panic| self.panic.set(panic)).ok()
    }
}

impl Wire for CatchingWire {
    fn process(&self) -> u32 {
        self.wire.process()
    }

    fn processes(&self) -> u32 {
        self.wire.processes()
    }

    fn send(&self, to: u32, packet: Vec<u8>) {
        self.call(|wire| wire.send(to, packet));
    }

    fn poll(&self, sink: &mut dyn FnMut(u32, &[u8])) {
        self.call(|wire| wire.poll(sink));
    }

    fn has_unsent(&self) -> bool {
        self.call(|wire| wire.has_unsent()).unwrap_or(false)
    }

    fn unsent_bytes(&self, to: u32) -> usize {
        self.wire.unsent_bytes(to)
    }

    fn is_lost(&self, process: u32) -> bool {
        self.panic().is_some() || self.call(|wire| wire.is_lost(process)).unwrap_or(true)
    }

    fn give_up(&self, process: u32) {
        self.call(|wire| wire.give_up(process));
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let wire = &*self.wire;
        foreign::catch(|| wire.descriptor()).map_err(|panic| self.panic.set(panic)).ok().flatten()
    }
}
