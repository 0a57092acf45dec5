//! Tickets, by which long puts between processes land without a question.

use std::time::{Duration, Instant};

use talpf::{Config, Context, Error, Rank, SyncMode, TicketCounts};
use talpf_runtime::Array;

use crate::common;

/// Elements of a put, more than travel with their claim.
const LEN: usize = 4096;

fn config() -> Config {
    Config { check_conflicts: false, ..common::config(2, 1) }
}

/// Runs rounds, from 1 on, in which rank 1 puts to rank 0, or as many of them as `puts` says. Returns the tickets
/// that each rank has given.
async fn put_in_rounds(
    ctx: Context,
    rounds: u64,
    puts: fn(u64) -> bool,
) -> Result<TicketCounts, Error> {
    let inbox = common::array(&ctx, vec![0u64; LEN])?;
    let slot = ctx.register_global(&inbox).await?;
    let mine = common::array(&ctx, vec![0u64; LEN])?;
    let mut last = 0;
    for round in 1..=rounds {
        let puts = puts(round);
        let open = ctx.round();
        let is_target = ctx.rank() == Rank(0);
        let sync = ctx.sync(SyncMode::msg(u32::from(is_target && puts)).with_barrier());
        let sync = sync.window(&inbox.all()).spawn()?;
        if puts && !is_target {
            let fill = ctx.group().task("fill").output(&mine.all());
            fill.run(move |mut mine| mine.fill(round))?.await?;
            let from = ctx.group().task("lend").input(&mine.all()).run(|mine| mine)?.await?;
            open.put(from, slot.at(Rank(0), 0)).await?;
        }
        drop(open);
        sync.await?;
        if is_target && puts {
            last = round;
        }
        assert_eq!(common::read(&ctx, &inbox).await?, vec![last; LEN], "round {round}");
    }
    Ok(ctx.ticket_counts())
}

#[test]
fn puts_that_are_repeated_land_by_ticket() {
    let ends = common::run(config(), |ctx| put_in_rounds(ctx, 200, |_| true)).unwrap();
    let TicketCounts { given, used, late, unused, .. } = ends[0];
    // On a machine with other work a put waits too long for most tickets, and asks.
    assert!(used > 0, "{:?}", ends[0]);
    assert_eq!((unused, given), (0, used + late), "{:?}", ends[0]);
    assert_eq!(ends[1], TicketCounts::default());
}

/// As [`put_in_rounds`], of which rank 1 ends some without a put.
#[test]
fn a_ticket_that_is_not_used_comes_back_and_fewer_follow() {
    let ends = common::run(config(), |ctx| put_in_rounds(ctx, 60, |round| round % 2 == 1));
    let ends = ends.unwrap();
    let TicketCounts { unused, .. } = ends[0];
    assert!((1..=6).contains(&unused), "{:?}", ends[0]);
}

#[test]
fn a_run_that_checks_for_conflicts_has_no_tickets() {
    let config = Config { check_conflicts: true, ..config() };
    let ends = common::run(config, |ctx| put_in_rounds(ctx, 20, |_| true)).unwrap();
    assert_eq!(ends, [TicketCounts::default(); 2]);
}

/// The program of rank 1 ends after a few rounds, while rank 0 goes on to open its window.
#[test]
fn tickets_of_a_rank_that_has_ended_hold_up_nobody() {
    common::run(config(), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; LEN])?;
        let slot = ctx.register_global(&inbox).await?;
        let mine = common::array(&ctx, vec![7u64; LEN])?;
        let is_target = ctx.rank() == Rank(0);
        for round in 0..if is_target { 40 } else { 20 } {
            if !is_target {
                ctx.put(&mine.all(), slot.at(Rank(0), 0))?;
            }
            let arrivals = u32::from(is_target && round < 20);
            ctx.sync(SyncMode::msg(arrivals)).window(&inbox.all()).await?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// The last put of rank 1 is a short one, for elements of a ticket that it holds as its program ends.
#[test]
fn a_rank_that_has_ended_gives_back_a_ticket_that_is_in_its_own_way() {
    for _ in 0..10 {
        let ends = common::run(config(), |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64; LEN])?;
            let slot = ctx.register_global(&inbox).await?;
            let mine = common::array(&ctx, vec![7u64; LEN])?;
            let is_target = ctx.rank() == Rank(0);
            let mode = SyncMode::msg(u32::from(is_target));
            for _ in 0..8 {
                if !is_target {
                    ctx.put(&mine.all(), slot.at(Rank(0), 0))?;
                }
                ctx.sync(mode).window(&inbox.all()).await?;
            }
            if !is_target {
                ctx.round().put_copy(&[9], slot.at(Rank(0), 5)).await?;
            }
            ctx.sync(mode).window(&inbox.all()).await?;
            Ok::<_, Error>(common::read(&ctx, &inbox).await?[4..7].to_vec())
        });
        assert_eq!(ends.unwrap()[0], [7, 9, 7]);
    }
}

/// Rank 2 puts to elements for which rank 1 has a ticket, and rank 1 waits for rank 2 before it ends the round.
#[test]
fn a_put_of_another_rank_does_not_wait_for_the_round_of_a_ticket() {
    const ROUNDS: usize = 30;
    let config = Config { ranks: 3, ..config() };
    let ends = common::run(config, |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; LEN])?;
        let slot = ctx.register_global(&inbox).await?;
        let mine = common::array(&ctx, vec![u64::from(ctx.rank().0); LEN])?;
        for round in 0..ROUNDS {
            let source = Rank(if round % 8 == 7 { 2 } else { 1 });
            let open = ctx.round();
            let arrivals = u32::from(ctx.rank() == Rank(0));
            let sync = ctx.sync(SyncMode::msg(arrivals)).window(&inbox.all()).spawn()?;
            if ctx.rank() == source {
                put(&ctx, &open, &mine, slot.at(Rank(0), 0)).await?;
                if source == Rank(2) {
                    ctx.notifications().notify(Rank(1), 0, 0).await?;
                }
            } else if ctx.rank() == Rank(1) {
                // With a handle of the round, which does not end.
                ctx.notifications().wait(0).await?;
            }
            drop(open);
            sync.await?;
        }
        Ok::<_, Error>(common::read(&ctx, &inbox).await?[0])
    });
    assert_eq!(ends.unwrap()[0], 1);
}

async fn put(
    ctx: &Context,
    open: &talpf::OpenRound,
    from: &Array<u64>,
    to: talpf::RemoteRegion<'_, u64>,
) -> Result<(), Error> {
    let from = ctx.group().task("lend").input(&from.all()).run(|from| from)?.await?;
    open.put(from, to).await?;
    Ok(())
}

/// Rank 1 has a ticket and computes, without polling.
#[test]
fn a_round_ends_once_a_source_that_computes_gives_its_ticket_back() {
    const BUSY: Duration = Duration::from_millis(30);
    let ends = common::run(config(), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; LEN])?;
        let slot = ctx.register_global(&inbox).await?;
        let mine = common::array(&ctx, vec![7u64; LEN])?;
        let is_target = ctx.rank() == Rank(0);
        for _ in 0..10 {
            if !is_target {
                ctx.put(&mine.all(), slot.at(Rank(0), 0))?;
            }
            ctx.sync(SyncMode::msg(u32::from(is_target)).with_barrier())
                .window(&inbox.all())
                .await?;
        }
        let start = Instant::now();
        if !is_target {
            common::spin(BUSY);
        }
        ctx.sync(SyncMode::msg(0)).window(&inbox.all()).await?;
        Ok::<_, Error>((start.elapsed(), ctx.ticket_counts().unused))
    });
    let (waited, unused) = ends.unwrap()[0];
    assert!(waited < 20 * BUSY && unused <= 1, "{waited:?}, {unused} tickets unused");
}
