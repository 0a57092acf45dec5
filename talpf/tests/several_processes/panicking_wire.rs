//! A wire that panics fails the run, whoever has called it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ibverbs_sim::{SocketWire, Wire};
use talpf::{Rank, SyncMode};

use crate::changed_wire::{ChangedWire, Changes};
use crate::common;

/// Panics of each send, or else of each poll, once the wire is broken.
struct Fragile {
    is_broken: Arc<AtomicBool>,
    in_send: bool,
}

impl Fragile {
    fn check(&self, in_send: bool) {
        assert!(self.in_send != in_send || !self.is_broken.load(Ordering::SeqCst), "it is cut");
    }
}

impl Changes for Fragile {
    fn before_send(&self, _: &[u8]) {
        self.check(true);
    }

    fn poll(&self, wire: &SocketWire, sink: &mut dyn FnMut(u32, &[u8])) {
        self.check(false);
        wire.poll(sink);
    }
}

fn breaks(in_send: bool) {
    common::quiet_panics();
    let is_broken = Arc::new(AtomicBool::new(false));
    let wires = SocketWire::mesh(2).unwrap().into_iter();
    let ranks = wires.map(|wire| {
        if wire.process() > 0 {
            return (Arc::new(wire) as Arc<dyn Wire>, common::unwatched(2, 1));
        }
        let changes = Fragile { is_broken: Arc::clone(&is_broken), in_send };
        (Arc::new(ChangedWire::new(wire, changes)) as Arc<dyn Wire>, common::unwatched(2, 1))
    });
    let ends = common::on_wires(ranks.collect(), |ctx| {
        let is_broken = Arc::clone(&is_broken);
        async move {
            let (one, inbox) = (common::array(&ctx, vec![1u64])?, common::array(&ctx, vec![0u64])?);
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(0) {
                is_broken.store(true, Ordering::SeqCst);
                ctx.put(&one.all(), slot.at(Rank(1), 0))?;
            }
            ctx.sync(SyncMode::msg(2)).window(&inbox.all()).await
        }
    });
    let [broken, other] = ends.try_into().unwrap();
    common::says(&broken.unwrap_err(), &["the wire has panicked: it is cut"]);
    assert!(other.is_err());
}

#[test]
fn a_wire_that_panics_as_it_is_polled() {
    breaks(false);
}

#[test]
fn a_wire_that_panics_as_it_sends() {
    breaks(true);
}
