//! Sleeps of the polling task of a process that waits for another one.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use ibverbs_sim::{ShmConfig, ShmRail};
use talpf::{Config, Context, Error, Progress, Rank, SyncMode, hook_on_rail};

use crate::common::{self, Gate};
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
fn polls_while_quiet(without_event: usize, progress: Progress) -> usize {
    let config = Config { progress, ..common::config(2, 1) };
    let polls = run_both(&config, move |ctx, [of_first, _]| async move {
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
    let polls = polls_while_quiet(1, Progress::Workers);
    // Naps of 200 us would be 250.
    assert!(polls < 50, "{polls} polls while nothing happened");
}

#[test]
fn a_thread_that_serves_sleeps() {
    let polls = polls_while_quiet(1, Progress::Thread);
    assert!(polls < 50, "{polls} polls while nothing happened");
}

#[test]
fn a_task_that_is_kept_awake_naps() {
    let polls = polls_while_quiet(usize::MAX, Progress::Workers);
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

/// Waits, and lets other tasks run meanwhile.
///
/// **Panics** after a long time.
async fn until(mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    let attempt = |context: &mut std::task::Context<'_>| match is_so() {
        true => Poll::Ready(()),
        false => {
            assert!(begin.elapsed() < LONG, "nothing has come for {LONG:?}");
            context.waker().wake_by_ref();
            Poll::Pending
        }
    };
    poll_fn(attempt).await;
}

const LONG: Duration = Duration::from_secs(30);

/// Other lanes, and puts of each, most of which have no credit.
const LANES: u8 = 200;
const OF_LANE: usize = 3;

/// Returns the elements of the puts of another lane.
fn part(lane: u8) -> Range<usize> {
    (lane as usize - 1) * OF_LANE..lane as usize * OF_LANE
}

/// Process 1 has a long put behind short ones that find no credit, and gets a ticket for it. Then process 0
/// computes.
#[test]
fn a_put_with_a_ticket_lands_however_many_operations_before_it_lack_credit() {
    /// Rounds after which a put is taken for one that is repeated.
    const BEFORE: usize = 2;
    const SHORT: usize = 1_000;
    const LEN: usize = 2 * common::COPIED;
    let config = Config { credits: 2, check_conflicts: false, ..common::config(2, 1) };
    let (queued, landed) = (Gate::default(), Gate::default());
    let ends = run_both(&config, move |ctx, _| {
        let (queued, landed) = (queued.clone(), landed.clone());
        async move {
            let [closed, inbox, others] =
                [SHORT, LEN, part(LANES).end].map(|len| common::array(&ctx, vec![0u64; len]));
            let (closed, inbox, others) = (closed?, inbox?, others?);
            let closed_slot = ctx.register_global(&closed).await?;
            let slot = ctx.register_global(&inbox).await?;
            let others_slot = ctx.register_global(&others).await?;
            let is_target = ctx.rank() == Rank(0);
            let other_syncs = || {
                let syncs = (1..=LANES).map(|lane| {
                    let mode = SyncMode::msg(if is_target { OF_LANE as u32 } else { 0 });
                    ctx.lane(lane)?.sync(mode).window(&others.region(part(lane))).spawn()
                });
                syncs.collect::<Result<Vec<_>, Error>>()
            };
            if !is_target {
                let ones = common::array(&ctx, vec![1u64; LEN])?;
                ctx.register_local(&ones)?;
                for _ in 0..BEFORE {
                    ctx.put(&ones.all(), slot.at(Rank(0), 0))?;
                    ctx.sync(SyncMode::msg(0).with_barrier()).await?;
                }
                for at in 0..SHORT {
                    ctx.put(&ones.region(..1), closed_slot.at(Rank(0), at))?;
                }
                ctx.put(&ones.all(), slot.at(Rank(0), 0))?;
                for lane in 1..=LANES {
                    for at in part(lane) {
                        ctx.lane(lane)?.put(&ones.region(..1), others_slot.at(Rank(0), at))?;
                    }
                }
                queued.open();
                ctx.group().task("landed").inout(&ones.region(1..)).run(drop)?.await?;
                landed.open();
                for sync in other_syncs()? {
                    sync.await?;
                }
                ctx.sync(SyncMode::msg(0)).await?;
                return Ok(true);
            }
            for _ in 0..BEFORE {
                ctx.sync(SyncMode::msg(1).with_barrier()).window(&inbox.all()).await?;
            }
            let hold = ctx.group().task("hold").inout(&closed.all()).inout(&inbox.all());
            let (held, free) = hold.run(|closed, inbox| (closed, inbox))?.await?;
            let sync = ctx.sync(SyncMode::msg(SHORT as u32 + 1));
            let sync = sync.window(&closed.all()).window(&inbox.all()).spawn()?;
            queued.passed().await;
            let before = ctx.ticket_counts().given;
            drop(free);
            until(|| ctx.ticket_counts().given > before).await;
            // The only worker takes nothing in, and gives no credit.
            let compute = move || {
                let begin = Instant::now();
                while !landed.is_open() && begin.elapsed() < LONG {
                    thread::yield_now();
                }
                landed.is_open()
            };
            let has_landed = ctx.group().task("compute").run(compute)?.await?;
            drop(held);
            for sync in other_syncs()? {
                sync.await?;
            }
            sync.await?;
            Ok(has_landed)
        }
    });
    assert!(ends[0], "the put waits for credit, which it does not need");
}
