//! The last messages of a process, which the others read before its connections close.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ibverbs_sim::{SocketWire, Wire};
use talpf::SyncMode;

use crate::common;

/// A wire of two processes that is read late, and has lost what is unread once that of the peer has closed. So does
/// TCP if the peer has unread bytes as it closes.
struct Reset {
    wire: SocketWire,
    closed: Arc<[AtomicBool; 2]>,
    polls: AtomicU32,
}

/// Polls between those that read.
const LATE: u32 = 1000;

impl Reset {
    fn pair() -> Vec<Self> {
        let closed = Arc::new([const { AtomicBool::new(false) }; 2]);
        let wires = SocketWire::mesh(2).unwrap().into_iter();
        wires.map(|wire| Self { wire, closed: closed.clone(), polls: AtomicU32::new(0) }).collect()
    }

    fn is_reset(&self) -> bool {
        self.closed[1 - self.wire.process() as usize].load(Ordering::Acquire)
    }
}

impl Wire for Reset {
    fn process(&self) -> u32 {
        self.wire.process()
    }

    fn processes(&self) -> u32 {
        self.wire.processes()
    }

    fn send(&self, to: u32, packet: Vec<u8>) {
        self.wire.send(to, packet);
    }

    fn poll(&self, sink: &mut dyn FnMut(u32, &[u8])) {
        let polls = self.polls.fetch_add(1, Ordering::Relaxed);
        if !self.is_reset() && (self.wire.process() == 0 || polls.is_multiple_of(LATE)) {
            self.wire.poll(sink);
        }
    }

    fn has_unsent(&self) -> bool {
        self.wire.has_unsent()
    }

    fn is_lost(&self, process: u32) -> bool {
        self.is_reset() || self.wire.is_lost(process)
    }
}

impl Drop for Reset {
    fn drop(&mut self) {
        self.closed[self.wire.process() as usize].store(true, Ordering::Release);
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
