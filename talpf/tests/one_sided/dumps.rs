//! Dumps of a run that goes on.

use std::thread;

use talpf::{Config, Context, Error, Rank, SyncMode};
use talpf_runtime::Monitor;

use crate::common;

const DUMPS: usize = 100;

/// Several threads dump at once, while the polling task runs.
#[test]
fn every_dump_says_what_a_sync_waits_for() {
    let monitor = Monitor::default();
    let mut config: Config = common::config(2, 2);
    config.runtime.monitor = Some(monitor.clone());
    let is_reported = move || {
        let dump = monitor.dump().map(|dump| dump.to_string()).unwrap_or_default();
        dump.contains("rank 0: sync(msg(1)) of lane 0 round 0 expects 1 operation")
    };
    let seen = common::run(config, move |ctx: Context| {
        let is_reported = is_reported.clone();
        async move {
            let one = common::array(&ctx, vec![1u64])?;
            let inbox = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(0) {
                ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await?;
                return Ok::<_, Error>(0);
            }
            while !is_reported() {
                thread::yield_now();
            }
            let seen = thread::scope(|scope| {
                let many = || (0..DUMPS).filter(|_| is_reported()).count();
                let threads = [(); 3].map(|()| scope.spawn(many));
                threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
            });
            ctx.put(&one.all(), slot.at(Rank(0), 0))?;
            ctx.sync(SyncMode::msg(0)).await?;
            Ok(seen)
        }
    });
    assert_eq!(seen.unwrap()[1], 3 * DUMPS);
}
