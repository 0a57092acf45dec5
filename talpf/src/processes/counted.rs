//! A wire that counts what goes through it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ibverbs_sim::Wire;

/// Packets that have gone to each process, and come from it.
pub(crate) struct Counted {
    wire: Arc<dyn Wire>,
    sent: Box<[AtomicU64]>,
    taken: Box<[AtomicU64]>,
}

impl Counted {
    pub(crate) fn new(wire: Arc<dyn Wire>) -> Self {
        let counters = || (0..wire.processes()).map(|_| AtomicU64::new(0)).collect();
        Counted { sent: counters(), taken: counters(), wire }
    }

    pub(super) fn sent(&self, to: u32) -> u64 {
        self.sent[to as usize].load(Ordering::SeqCst)
    }

    pub(super) fn taken(&self, from: u32) -> u64 {
        self.taken[from as usize].load(Ordering::SeqCst)
    }
}

impl Wire for Counted {
    fn process(&self) -> u32 {
        self.wire.process()
    }

    fn processes(&self) -> u32 {
        self.wire.processes()
    }

    fn send(&self, to: u32, packet: Vec<u8>) {
        self.sent[to as usize].fetch_add(1, Ordering::SeqCst);
        self.wire.send(to, packet);
    }

    fn poll(&self, sink: &mut dyn FnMut(u32, &[u8])) {
        self.wire.poll(&mut |from, packet| {
            self.taken[from as usize].fetch_add(1, Ordering::SeqCst);
            sink(from, packet);
        });
    }

    fn has_unsent(&self) -> bool {
        self.wire.has_unsent()
    }

    fn unsent_bytes(&self, to: u32) -> usize {
        self.wire.unsent_bytes(to)
    }

    fn is_lost(&self, process: u32) -> bool {
        self.wire.is_lost(process)
    }
}
