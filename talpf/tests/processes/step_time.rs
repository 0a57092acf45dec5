//! Ranks of several processes that exchange something in short steps do not wait for pauses of
//! their polling tasks.

use std::time::{Duration, Instant};

use talpf::{Error, Rank, SyncMode};

use crate::common;

/// Steps that are timed together, and how often.
const STEPS: u32 = 10;
const BATCHES: u32 = 100;
/// The work of rank 0 in a step, for which rank 1 waits.
const WORK: Duration = Duration::from_micros(200);
/// The put and its answers come one after another. If each waited for a pause, which takes 100 us at
/// least, a step would take 550 us, and 700 us without optimization.
const LONGEST_STEP: Duration = Duration::from_micros(500);

#[test]
fn a_step_of_two_processes_takes_no_pauses_of_polling_tasks() {
    let fastest = common::run(common::config(2, 1), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64])?;
        let mine = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        let peer = Rank(1 - ctx.rank().0);
        let mut fastest = Duration::MAX;
        for _ in 0..BATCHES {
            let begin = Instant::now();
            for _ in 0..STEPS {
                let compute = ctx.group().task("compute").input(&inbox.all()).inout(&mine.all());
                let work = if peer == Rank(1) { WORK } else { Duration::ZERO };
                compute.spawn(move |inbox, mut mine| {
                    let begin = Instant::now();
                    while begin.elapsed() < work {}
                    mine[0] = inbox[0] + 1;
                })?;
                ctx.put(&mine.all(), slot.at(peer, 0))?;
                ctx.sync(SyncMode::CACHED).window(&inbox.all()).await?;
            }
            fastest = fastest.min(begin.elapsed() / STEPS);
        }
        let steps = u64::from(STEPS * BATCHES);
        assert_eq!(common::read(&ctx, &inbox).await?, [steps]);
        Ok::<_, Error>(fastest)
    });
    // Of batches that other programs disturb, one is not.
    let fastest = fastest.unwrap();
    assert!(fastest.iter().all(|step| *step < LONGEST_STEP), "a step took {fastest:?} at best");
}
