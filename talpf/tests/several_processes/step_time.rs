//! Ranks of several processes that exchange something in short steps do not wait for pauses of
//! their polling tasks.

use std::time::{Duration, Instant};

use talpf::{Config, Error, PollingFrequency, Rank, SyncMode};

use crate::common;

const STEPS: u64 = 500;
/// The work of rank 0 in a step, for which rank 1 waits.
const WORK: Duration = Duration::from_micros(200);
/// Length of a pause in which a worker parks.
const PAUSE: Duration = Duration::from_micros(200);

/// Runs steps of two processes with a worker each, and returns the share of steps in which the worker
/// has not parked, of the rank with fewer. A worker parks in each pause of its polling task, and while it
/// polls it does not, however slow the machine is.
fn share_without_pause(config: Config) -> f64 {
    let without = common::run(config, |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64])?;
        let mine = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        let peer = Rank(1 - ctx.rank().0);
        let mut without = 0;
        for _ in 0..STEPS {
            let parks = ctx.group().metrics().parks;
            let compute = ctx.group().task("compute").input(&inbox.all()).inout(&mine.all());
            let work = if peer == Rank(1) { WORK } else { Duration::ZERO };
            compute.spawn(move |inbox, mut mine| {
                let begin = Instant::now();
                while begin.elapsed() < work {}
                mine[0] = inbox[0] + 1;
            })?;
            ctx.put(&mine.all(), slot.at(peer, 0))?;
            ctx.sync(SyncMode::CACHED).window(&inbox.all()).await?;
            without += u64::from(ctx.group().metrics().parks == parks);
        }
        assert_eq!(common::read(&ctx, &inbox).await?, [STEPS]);
        Ok::<_, Error>(without)
    });
    without.unwrap().into_iter().min().unwrap() as f64 / STEPS as f64
}

#[test]
fn a_step_of_two_processes_takes_no_pauses_of_polling_tasks() {
    let share = share_without_pause(common::config(2, 1));
    // Of steps that other programs disturb for longer than the patience, some are not.
    assert!(share > 0.1, "{share} of the steps without a pause");
}

#[test]
fn pauses_that_a_program_asks_for_are_taken() {
    let polling = PollingFrequency::Every(PAUSE);
    let share = share_without_pause(Config { polling, ..common::config(2, 1) });
    // What has arrived during the work of a rank is there without a pause.
    assert!(share < 0.75, "{share} of the steps without a pause");
}
