//! Sleeps of the polling task of a process that waits for another one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use ibverbs_sim::{ShmConfig, ShmRail};
use talpf::{Config, Context, Error, Rank, SyncMode, hook_on_rail};

use crate::common;
use crate::counting_rail::{CountingRail, Counts};

/// Time within which the task is to sleep again, or to nap: a few milliseconds on an idle machine.
const SOON: Duration = Duration::from_millis(30);
const QUIET: Duration = Duration::from_millis(50);
/// On a machine that does much else one time may not be quiet.
const TIMES: usize = 5;

/// Runs `main` in two processes on rails whose calls are counted. Returns the values of both.
fn run_both<T, F>(
    config: &Config,
    main: impl Fn(Context, [Arc<Counts>; 2]) -> F + Clone + Send + Sync + 'static,
) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let _watchdog = common::watchdog("two processes");
    let counts = [(); 2].map(|()| Arc::new(Counts::default()));
    let rails = ShmRail::mesh(2, &ShmConfig::default()).unwrap();
    thread::scope(|scope| {
        let processes = rails.into_iter().zip(&counts).map(|(rail, own)| {
            let rail = Arc::new(CountingRail::new(rail, own));
            let (main, counts) = (main.clone(), counts.clone());
            let main = async move |ctx: Context| main(ctx, counts.clone()).await;
            scope.spawn(|| hook_on_rail(rail, config.clone(), main).unwrap())
        });
        let processes: Vec<_> = processes.collect();
        processes.into_iter().map(|process| process.join().unwrap()).collect()
    })
}

/// Returns the number of polls in a time in which nothing is to happen.
fn polls_of(counts: &Counts) -> usize {
    thread::sleep(SOON);
    let before = counts.polls.load(Ordering::SeqCst);
    thread::sleep(QUIET);
    counts.polls.load(Ordering::SeqCst) - before
}

/// Returns the least number of polls of a process in a time in which it waits for another one, after so
/// many of its sleeps have found nothing to sleep on.
fn polls_while_quiet(without_event: usize) -> usize {
    let polls = run_both(&common::config(2, 1), move |ctx, [of_first, _]| async move {
        let mut polls = Vec::new();
        for _ in 0..TIMES {
            ctx.sync(SyncMode::DEFAULT).await?;
            if ctx.rank() == Rank(0) {
                of_first.without_event.store(without_event, Ordering::SeqCst);
                continue;
            }
            let while_quiet = polls_of(&of_first);
            if of_first.without_event.load(Ordering::SeqCst) < without_event {
                polls.push(while_quiet);
            }
        }
        if ctx.rank() == Rank(1) {
            of_first.without_event.store(0, Ordering::SeqCst);
        }
        ctx.sync(SyncMode::DEFAULT).await?;
        Ok(polls)
    });
    polls.into_iter().flatten().min().expect("the task has tried to sleep")
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

/// Puts and the numbers of each: more than a ring has room for.
const MANY: usize = 2_000;
const NUMBERS: usize = 32;

/// Process 1 has sent more than there is room for, while process 0 takes nothing in.
#[test]
fn a_task_whose_messages_find_no_room_sleeps_until_there_is_some() {
    let config = Config { credits: MANY, ..common::config(2, 1) };
    let ends = run_both(&config, |ctx, [_, of_second]| async move {
        let inbox = common::array(&ctx, vec![0u64; MANY * NUMBERS])?;
        let slot = ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(1) {
            let round = ctx.round();
            for index in 0..MANY {
                round.put_copy(&[index as u64; NUMBERS], slot.at(Rank(0), index * NUMBERS)).await?;
            }
            drop(round);
            ctx.sync(SyncMode::msg(0)).await?;
            return Ok((0, 0, vec![]));
        }
        let sync = ctx.sync(SyncMode::msg(MANY as u32)).window(&inbox.all()).spawn()?;
        // The only worker takes nothing in meanwhile.
        let watch = move || {
            let polls = (0..TIMES).map(|_| polls_of(&of_second)).min().unwrap_or(0);
            (polls, of_second.refused.load(Ordering::SeqCst))
        };
        let (polls, refused) = ctx.group().task("watch").run(watch)?.await?;
        sync.await?;
        Ok((polls, refused, common::read(&ctx, &inbox).await?))
    });
    let (polls, refused, values) = &ends[0];
    assert!(values.iter().enumerate().all(|(at, value)| *value == (at / NUMBERS) as u64));
    assert!(*refused > 0, "there was room for everything");
    // Naps of 200 us would be 250.
    assert!(*polls < 50, "{polls} polls while nothing happened");
}

/// Process 1 has put more than it has credit for, short ones or long ones, while process 0 takes nothing in.
#[test]
fn a_task_whose_operations_find_no_credit_sleeps_until_there_is_some() {
    const PUTS: usize = 1_000;
    for numbers in [1, 2 * common::COPIED] {
        let config = Config { credits: 2, ..common::config(2, 1) };
        let ends = run_both(&config, move |ctx, [_, of_second]| async move {
            let inbox = common::array(&ctx, vec![0u64; PUTS * numbers])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(1) {
                let values: Vec<_> = (0..PUTS * numbers).map(|at| (at / numbers) as u64).collect();
                let values = common::array(&ctx, values)?;
                ctx.register_local(&values)?;
                for at in (0..PUTS).map(|put| put * numbers) {
                    ctx.put(&values.region(at..at + numbers), slot.at(Rank(0), at))?;
                }
                ctx.sync(SyncMode::msg(0)).await?;
                return Ok((0, vec![]));
            }
            let sync = ctx.sync(SyncMode::msg(PUTS as u32)).window(&inbox.all()).spawn()?;
            // The only worker takes nothing in meanwhile.
            let watch = move || (0..TIMES).map(|_| polls_of(&of_second)).min().unwrap_or(0);
            let polls = ctx.group().task("watch").run(watch)?.await?;
            sync.await?;
            Ok((polls, common::read(&ctx, &inbox).await?))
        });
        let (polls, values) = &ends[0];
        assert!(values.iter().enumerate().all(|(at, value)| *value == (at / numbers) as u64));
        // Naps of a millisecond would be 40.
        assert!(*polls < 10, "{polls} polls while nothing happened, {numbers} numbers each");
    }
}
