//! Sleeps of the polling task of a process that waits for another one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use ibverbs_sim::{ShmConfig, ShmRail};
use talpf::{Context, Error, Rank, SyncMode, hook_on_rail};

use crate::common;
use crate::counting_rail::{CountingRail, Counts};

/// Time within which the task is to sleep again, or to nap: a few milliseconds on an idle machine.
const SOON: Duration = Duration::from_millis(30);
const QUIET: Duration = Duration::from_millis(50);
/// On a machine that does much else one time may not be quiet.
const TIMES: usize = 5;

/// Returns the least number of polls of a process in a time in which it waits for another one, after so
/// many of its sleeps have found nothing to sleep on.
fn polls_while_quiet(without_event: usize) -> usize {
    let _watchdog = common::watchdog("two processes");
    let counts = [(); 2].map(|()| Arc::new(Counts::default()));
    let rails = ShmRail::mesh(2, &ShmConfig::default()).unwrap();
    let polls = thread::scope(|scope| {
        let processes = rails.into_iter().zip(&counts).map(|(rail, own)| {
            let rail = Arc::new(CountingRail::new(rail, own));
            let of_first = Arc::clone(&counts[0]);
            let main = async move |ctx: Context| {
                let mut polls = Vec::new();
                for _ in 0..TIMES {
                    ctx.sync(SyncMode::DEFAULT).await?;
                    if ctx.rank() == Rank(0) {
                        of_first.without_event.store(without_event, Ordering::SeqCst);
                        continue;
                    }
                    thread::sleep(SOON);
                    let before = of_first.polls.load(Ordering::SeqCst);
                    thread::sleep(QUIET);
                    if of_first.without_event.load(Ordering::SeqCst) < without_event {
                        polls.push(of_first.polls.load(Ordering::SeqCst) - before);
                    }
                }
                if ctx.rank() == Rank(1) {
                    of_first.without_event.store(0, Ordering::SeqCst);
                }
                ctx.sync(SyncMode::DEFAULT).await?;
                Ok::<_, Error>(polls)
            };
            scope.spawn(move || hook_on_rail(rail, common::config(2, 1), main).unwrap())
        });
        let processes: Vec<_> = processes.collect();
        processes.into_iter().flat_map(|process| process.join().unwrap()).collect::<Vec<_>>()
    });
    polls.into_iter().min().expect("the task has tried to sleep")
}

#[test]
fn a_task_that_was_kept_awake_for_a_moment_sleeps_soon_after() {
    let polls = polls_while_quiet(1);
    // Naps of 200 us would be 250.
    assert!(polls < 50, "{polls} polls while nothing happened");
}

#[test]
fn a_task_that_is_kept_awake_naps() {
    let polls = polls_while_quiet(usize::MAX);
    // Naps of 200 us are 250, polls without them 50,000 and more.
    assert!(polls < 1_000, "{polls} polls while nothing happened");
}
