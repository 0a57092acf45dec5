//! The last messages of a process, which the others read before its connections close.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ibverbs_sim::{SocketWire, Wire};
use talpf::SyncMode;

use crate::changed_wire::{ChangedWire, Changes};
use crate::common;

/// Late reads of a wire between two processes, and loss of what was not read when the peer closes its end. TCP loses it,
/// too, if the peer has unread bytes as it closes.
struct Reset {
    process: usize,
    closed: Arc<[AtomicBool; 2]>,
    polls: AtomicU32,
}

/// Polls between those that read.
const LATE: u32 = 1000;

impl Reset {
    fn pair() -> Vec<ChangedWire<Self>> {
        let closed = Arc::new([const { AtomicBool::new(false) }; 2]);
        let wires = (0..).zip(SocketWire::mesh(2).unwrap());
        let reset = |process| Self { process, closed: closed.clone(), polls: AtomicU32::new(0) };
        wires.map(|(process, wire)| ChangedWire::new(wire, reset(process))).collect()
    }

    fn is_reset(&self) -> bool {
        self.closed[1 - self.process].load(Ordering::Acquire)
    }
}

impl Changes for Reset {
    fn poll(&self, wire: &SocketWire, sink: &mut dyn FnMut(u32, &[u8])) {
        let polls = self.polls.fetch_add(1, Ordering::Relaxed);
        if !self.is_reset() && (self.process == 0 || polls.is_multiple_of(LATE)) {
            wire.poll(sink);
        }
    }

    fn is_lost(&self, wire: &SocketWire, process: u32) -> bool {
        self.is_reset() || wire.is_lost(process)
    }
}

impl Drop for Reset {
    fn drop(&mut self) {
        self.closed[self.process].store(true, Ordering::Release);
    }
}

#[test]
fn a_process_ends_once_the_others_have_read_its_last_messages() {
    for _ in 0..20 {
        let wires = Reset::pair().into_iter().map(|wire| Arc::new(wire) as Arc<dyn Wire>);
        let ranks = wires.map(|wire| (wire, common::config(2, 1))).collect();
        let ends = common::on_wires(ranks, |ctx| async move { ctx.sync(SyncMode::DEFAULT).await });
        ends.into_iter().for_each(|end| end.unwrap());
    }
}
