//! A wire that counts its packets and catches its panics.

use std::sync::atomic::{AtomicU64, Ordering};

use std::sync::{Arc, OnceLock};

use ibverbs_sim::Wire;

use crate::foreign;

/// A wire with the number of packets sent to and taken from each process.
pub(crate) struct CountingWire {
    wire: Arc<dyn Wire>,
    sent: Box<[AtomicU64]>,
    taken: Box<[AtomicU64]>,
    /// The text of the first panic of the wire.
    panic: OnceLock<String>,
}

impl CountingWire {
    pub(crate) fn new(wire: Arc<dyn Wire>) -> Self {
        let counters = || (0..wire.processes()).map(|_| AtomicU64::new(0)).collect();
        CountingWire { sent: counters(), taken: counters(), wire, panic: OnceLock::new() }
    }

    pub(super) fn sent(&self, to: u32) -> u64 {
        self.sent[to as usize].load(Ordering::SeqCst)
    }

    pub(super) fn taken(&self, from: u32) -> u64 {
        self.taken[from as usize].load(Ordering::SeqCst)
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

impl Wire for CountingWire {
    fn process(&self) -> u32 {
        self.wire.process()
    }

    fn processes(&self) -> u32 {
        self.wire.processes()
    }

    fn send(&self, to: u32, packet: Vec<u8>) {
        self.sent[to as usize].fetch_add(1, Ordering::SeqCst);
        self.call(|wire| wire.send(to, packet));
    }

    fn poll(&self, sink: &mut dyn FnMut(u32, &[u8])) {
        self.call(|wire| {
            wire.poll(&mut |from, packet| {
                self.taken[from as usize].fetch_add(1, Ordering::SeqCst);
                sink(from, packet);
            });
        });
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
}
