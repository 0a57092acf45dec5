//! Atomics on raw slots of another process of the machine.
#![allow(unsafe_code, reason = "numbers of raw slots are changed by atomics only")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ibverbs_sim::{ShmConfig, ShmRail};
use talpf::{Config, Context, Error, Rank, SyncMode, hook_on_rail};

use crate::common;

/// Numbers of an array that other processes map.
const LEN: usize = 512;
/// Time after which a worker stops to compute though nothing has happened.
const LIMIT: Duration = Duration::from_secs(10);

/// Adds to a number of rank 0, and again while the worker of that computes. Returns `true` if that has ended while it did.
async fn add(ctx: Context, has_added: Arc<AtomicBool>) -> Result<bool, Error> {
    let [numbers, before] = [0; 2].map(|_| common::array(&ctx, vec![0u64; LEN]));
    let (numbers, before) = (numbers?, before?);
    // SAFETY: tasks read it after the last round only.
    let slot = unsafe { ctx.register_raw(&numbers) }.await?;
    ctx.register_local(&before)?;
    for while_it_computes in [false, true] {
        let round = ctx.round();
        if ctx.rank() == Rank(1) {
            let result = before.region(..1);
            let result = ctx.group().task("result").output(&result).run(|result| result)?;
            round.fetch_and_add(slot.at(Rank(0), 0), 7, result.await?).await?;
            has_added.store(while_it_computes, Ordering::SeqCst);
        } else if while_it_computes {
            let start = Instant::now();
            while !has_added.load(Ordering::SeqCst) && start.elapsed() < LIMIT {
                thread::yield_now();
            }
        }
        let has_added = has_added.load(Ordering::SeqCst);
        drop(round);
        ctx.sync(SyncMode::DEFAULT.with_barrier()).await?;
        if while_it_computes {
            let expected = if ctx.rank() == Rank(0) { 14 } else { 0 };
            assert_eq!(common::read(&ctx, &numbers).await?[0], expected);
            return Ok(has_added);
        }
    }
    Ok(false)
}

#[test]
fn numbers_change_without_a_worker_of_their_rank() {
    let _watchdog = common::watchdog("two processes");
    let has_added = Arc::new(AtomicBool::new(false));
    let rails = ShmRail::mesh(2, &ShmConfig::default()).unwrap();
    thread::scope(|scope| {
        for rail in rails {
            let config = Config { check_conflicts: false, ..common::config(2, 1) };
            let has_added = Arc::clone(&has_added);
            let main = async move |ctx: Context| add(ctx, has_added).await;
            scope.spawn(move || assert!(hook_on_rail(Arc::new(rail), config, main).unwrap()));
        }
    });
}
