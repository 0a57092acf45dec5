//! Processes that a thread serves, whatever their workers do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ibverbs_sim::{SocketWire, Wire};
use talpf::{Config, Error, Progress, Rank, SyncMode};
use talpf_runtime::Array;

use crate::changed_wire::ChangedWire;
use crate::common;

/// Time after which a worker stops to compute though nobody was served.
const LIMIT: Duration = Duration::from_secs(10);

fn config() -> Config {
    Config { progress: Progress::Thread, ..common::config(2, 1) }
}

#[test]
fn gets_and_puts_are_served_while_all_workers_of_their_target_compute() {
    let is_served = Arc::new(AtomicBool::new(false));
    let results = common::run(config(), move |ctx| {
        let is_served = Arc::clone(&is_served);
        async move {
            let shown = Array::new(ctx.group(), vec![5u64; 1], 1)?;
            let inbox = Array::new(ctx.group(), vec![0u64; 1], 1)?;
            let from = ctx.register_global(&shown).await?;
            let to = ctx.register_global(&inbox).await?;
            let mode = SyncMode::msg(if ctx.rank() == Rank(0) { 2 } else { 0 });
            if ctx.rank() == Rank(0) {
                let sync = ctx.sync(mode).expose(&shown.all()).window(&inbox.all()).spawn()?;
                let start = Instant::now();
                while !is_served.load(Ordering::SeqCst) && start.elapsed() < LIMIT {
                    thread::yield_now();
                }
                let was_served = is_served.load(Ordering::SeqCst);
                sync.await?;
                let put = ctx.group().task("read").input(&inbox.all()).run(|inbox| inbox[0])?;
                return Ok((was_served, put.await?));
            }
            let copy = Array::new(ctx.group(), vec![0u64; 1], 1)?;
            let copied = ctx.group().task("copy").output(&copy.all()).run(|copy| copy)?;
            let round = ctx.round();
            let copied = round.get(from.at(Rank(0), 0), copied.await?).await?;
            round.put_copy(&[copied[0] + 1], to.at(Rank(0), 0)).await?;
            is_served.store(true, Ordering::SeqCst);
            drop(round);
            ctx.sync(mode).await?;
            Ok((true, copied[0]))
        }
    });
    assert_eq!(results.unwrap(), [(true, 6), (true, 5)]);
}

#[test]
fn a_thread_needs_a_rail_with_an_event() {
    let wires = SocketWire::mesh(2).unwrap().into_iter();
    let wires = wires.map(|wire| Arc::new(ChangedWire::new(wire, ())) as Arc<dyn Wire>);
    let ends = common::on_wires(wires.map(|wire| (wire, config())).collect(), |_| async { Ok(()) });
    for end in ends {
        assert!(matches!(end, Err(Error::NoEvent)), "{end:?}");
    }
}
