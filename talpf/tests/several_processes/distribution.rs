//! Each process has as many ranks, and they are consecutive.

use std::sync::Arc;
use std::thread;

use ibverbs_sim::{ShmConfig, ShmRail};
use talpf::{Config, Context, Error, Rank, SyncMode, exec_on_rail};

use crate::common;
use crate::rails::{Between, in_processes};

#[test]
fn ranks_are_numbered_across_processes() {
    for between in Between::ALL {
        let ends = in_processes(between, 3, common::config(2, 1), |ctx| async move {
            ctx.sync(SyncMode::DEFAULT).await?;
            Ok((ctx.rank().0, ctx.size()))
        });
        let ends: Vec<_> = ends.into_iter().collect::<Result<_, _>>().unwrap();
        assert!(ends.into_iter().eq((0..6).map(|rank| (rank, 6))));
    }
}

#[test]
fn ranks_put_to_those_of_their_process_and_of_others() {
    for between in Between::ALL {
        for (processes, each, workers) in [(2, 2, 1), (2, 3, 2), (3, 2, 1), (1, 3, 2)] {
            for len in [1, 200, 3000] {
                let config = common::config(each, workers);
                let ends = in_processes(between, processes, config, |ctx| put_to_all(ctx, len));
                for end in ends {
                    let at = format!("{between:?}, {processes} x {each} ranks");
                    end.unwrap_or_else(|error| panic!("{at}: {error}"));
                }
            }
        }
    }
}

/// Puts to every rank, this one too, and checks what comes, for some rounds.
async fn put_to_all(ctx: Context, len: usize) -> Result<(), Error> {
    let (here, ranks) = (ctx.rank().0 as usize, ctx.size() as usize);
    let mine = common::array(&ctx, vec![0u64; len])?;
    let inbox = common::array(&ctx, vec![0u64; len * ranks])?;
    ctx.register_local(&mine)?;
    let slot = ctx.register_global(&inbox).await?;
    for round in 0..8 {
        let fill = ctx.group().task("fill").output(&mine.all());
        fill.spawn(move |mut mine| mine.fill((1000 * round + here) as u64))?;
        for rank in 0..ctx.size() {
            ctx.put(&mine.all(), slot.at(Rank(rank), here * len))?;
        }
        let mode = common::modes(ctx.size())[round % 10];
        ctx.sync(mode).window(&inbox.all()).spawn()?;
        let check = ctx.group().task("check").input(&inbox.all());
        check.spawn(move |inbox| {
            let value = |at: usize| (1000 * round + at / len) as u64;
            assert!(inbox.iter().enumerate().all(|(at, seen)| *seen == value(at)));
        })?;
    }
    ctx.group().wait().await?;
    Ok(())
}

#[test]
fn a_rank_that_fails_is_named_in_all_processes() {
    for between in Between::ALL {
        let ends = in_processes(between, 2, common::unwatched(2, 1), |ctx| async move {
            if ctx.rank() == Rank(3) {
                return Err(Error::RunEnded);
            }
            ctx.sync(SyncMode::DEFAULT).await
        });
        let [first, second] = [0, 2].map(|rank| ends[rank].as_ref().unwrap_err().to_string());
        assert!(first.starts_with("rank 3 failed"), "{first}");
        assert_eq!(second, Error::RunEnded.to_string());
    }
}

#[test]
fn a_sync_that_waits_for_a_rank_that_has_ended_fails() {
    for between in Between::ALL {
        let ends = in_processes(between, 2, common::unwatched(2, 1), |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64])?;
            ctx.register_global(&inbox).await?;
            if ctx.rank().0 >= 2 {
                return Ok(());
            }
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await
        });
        assert!(matches!(ends[0], Err(Error::PeerFailed { .. })), "{:?}", ends[0]);
    }
}

#[test]
fn a_hang_is_one_of_all_processes() {
    for between in Between::ALL {
        let ends = in_processes(between, 2, common::watched(2, 1), |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64])?;
            ctx.register_global(&inbox).await?;
            ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await
        });
        let hangs = |end: &Result<(), Error>| match end {
            Err(Error::Runtime(talpf_runtime::Error::Hang(text))) => Some(text.to_string()),
            _ => None,
        };
        let text = ends.iter().find_map(hangs).unwrap_or_else(|| panic!("no hang in {ends:?}"));
        assert!(text.contains("sync(msg(1)) of lane 0 round 0 expects 1 operation"), "{text}");
    }
}

#[test]
fn processes_with_other_numbers_of_ranks_do_not_run() {
    let rails = ShmRail::mesh(2, &ShmConfig::default()).unwrap();
    let ends: Vec<Result<Vec<()>, Error>> = thread::scope(|scope| {
        let start = |(rail, ranks)| {
            let config = Config { ranks, ..common::unwatched(1, 1) };
            let main = async |ctx: Context| ctx.sync(SyncMode::DEFAULT).await;
            scope.spawn(move || exec_on_rail(Arc::new(rail), config, main))
        };
        let threads: Vec<_> = rails.into_iter().zip([1, 2]).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for end in ends {
        let text = end.unwrap_err().to_string();
        assert!(text.contains("rank"), "{text}");
    }
}
