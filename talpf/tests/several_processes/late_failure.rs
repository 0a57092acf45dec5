//! The failure of a process reaches another one later than the end of a third one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ibverbs_sim::{SocketWire, Wire};
use talpf::{Error, NameError, Rank};

use crate::changed_wire::{ChangedWire, Changes};
use crate::common::{self, Gate};

/// Delay of what process 2 has sent: it arrives once it is no longer held back.
struct HeldBack {
    is_held_back: Arc<AtomicBool>,
    packets: Mutex<Vec<Vec<u8>>>,
}

impl Changes for HeldBack {
    fn poll(&self, wire: &SocketWire, sink: &mut dyn FnMut(u32, &[u8])) {
        let mut packets = self.packets.lock().unwrap();
        let is_held_back = self.is_held_back.load(Ordering::SeqCst);
        if !is_held_back {
            packets.drain(..).for_each(|packet| sink(2, &packet));
        }
        wire.poll(&mut |from, packet| match from {
            2 if is_held_back => packets.push(packet.to_vec()),
            _ => sink(from, packet),
        });
    }
}

/// Rank 2 fails, and rank 0 learns first that rank 1 has ended.
#[test]
fn a_process_that_ends_after_a_failure_says_so() {
    let is_held_back = Arc::new(AtomicBool::new(false));
    let wires = SocketWire::mesh(3).unwrap().into_iter();
    let ranks = wires.map(|wire| {
        let wire: Arc<dyn Wire> = match wire.process() {
            0 => {
                let (is_held_back, packets) = (Arc::clone(&is_held_back), Mutex::default());
                Arc::new(ChangedWire::new(wire, HeldBack { is_held_back, packets }))
            }
            _ => Arc::new(wire),
        };
        (wire, common::unwatched(3, 1))
    });
    let begun = [Gate::default(), Gate::default()];
    let ends = common::on_wires(ranks.collect(), |ctx| {
        let (is_held_back, begun) = (Arc::clone(&is_held_back), begun.clone());
        async move {
            let Some(own) = begun.get(ctx.rank().0 as usize) else {
                // The processes have met, which needs messages of this one.
                begun[0].passed().await;
                begun[1].passed().await;
                is_held_back.store(true, Ordering::SeqCst);
                return Err(Error::NoSuchSlot { slot: 99 });
            };
            own.open();
            let found = ctx.lookup::<u64>(1 - ctx.rank().0, "in").await;
            if ctx.rank() == Rank(0) {
                is_held_back.store(false, Ordering::SeqCst);
            }
            found.map(drop)
        }
    });
    for end in &ends[..2] {
        let error = end.as_ref().unwrap_err();
        assert!(matches!(error, Error::Name(NameError::Failed { .. })), "{error:?}");
        common::says(error, &["`in`", "rank 2", "slot 99"]);
    }
}
