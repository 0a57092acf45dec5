//! After the failure of a rank every process returns an error, whatever it waits for; that of the
//! rank that failed is its own. What the others say depends on what reaches them first.

use std::time::Duration;

use crate::common::{self, Gate};
use talpf::{Config, Context, Error, Rank, SyncMode};
use talpf_runtime::Array;

/// The waits of the others, which never end by themselves.
const WAITS: [&str; 7] = ["msg", "default", "barrier", "get", "put", "group", "registration"];

async fn wait(ctx: &Context, values: &Array<u64>, what: &str) -> Result<(), Error> {
    let inbox = common::array(ctx, vec![0u64; 100])?;
    let slot = ctx.register_global(&inbox).await?;
    let there = slot.at(Rank(0), 0);
    match what {
        "msg" => ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await,
        "default" => ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await,
        "barrier" => ctx.sync(SyncMode::msg(0).with_barrier()).await,
        "get" => {
            ctx.get(there, &values.all())?;
            ctx.sync(SyncMode::msg(0)).await?;
            common::read(ctx, values).await.map(drop)
        }
        "put" => {
            ctx.put(&values.all(), there)?;
            ctx.sync(SyncMode::msg(0)).await?;
            let change = ctx.group().task("change").inout(&values.all());
            Ok(change.run(drop)?.await?)
        }
        "group" => {
            ctx.put(&values.all(), there)?;
            ctx.sync(SyncMode::msg(7)).window(&inbox.all()).spawn()?;
            Ok(ctx.group().wait().await?)
        }
        _ => ctx.register_global(values).await.map(drop),
    }
}

/// The failure of rank 0.
#[derive(Clone, Copy, Debug)]
enum Failure {
    MainReturns,
    MainPanics,
    TaskPanics,
}

async fn fail(ctx: &Context, values: &Array<u64>, failure: Failure) -> Result<(), Error> {
    let inbox = common::array(ctx, vec![0u64; 100])?;
    let slot = ctx.register_global(&inbox).await?;
    match failure {
        Failure::MainReturns => Err(Error::NoSuchSlot { slot: 99 }),
        Failure::MainPanics => panic!("the main is broken"),
        Failure::TaskPanics => {
            ctx.group().task("broken").inout(&values.all()).spawn(|_| panic!("broken"))?;
            ctx.put(&values.all(), slot.at(Rank(1), 0))?;
            ctx.sync(SyncMode::msg(9)).window(&inbox.all()).await
        }
    }
}

/// Fails rank 0 while the others wait. Returns its error.
fn run(failure: Failure, what: &'static str) -> Error {
    common::quiet_panics();
    let ends = common::run_all(common::unwatched(3, 2), |ctx| async move {
        let values = common::array(&ctx, vec![0u64; 100])?;
        ctx.register_local(&values)?;
        match ctx.rank() {
            Rank(0) => fail(&ctx, &values, failure).await,
            _ => wait(&ctx, &values, what).await,
        }
    });
    for (rank, end) in ends.iter().enumerate() {
        assert!(end.is_err(), "rank {rank} waits for {what}, {failure:?}");
    }
    ends.into_iter().next().unwrap().unwrap_err()
}

#[test]
fn a_main_that_returns_an_error() {
    for what in WAITS {
        let error = run(Failure::MainReturns, what);
        assert!(matches!(error, Error::NoSuchSlot { slot: 99 }), "{what}: {error}");
    }
}

#[test]
fn a_main_that_panics() {
    for what in WAITS {
        common::says(&run(Failure::MainPanics, what), &["the main is broken"]);
    }
}

#[test]
fn a_task_that_panics() {
    for what in WAITS {
        run(Failure::TaskPanics, what);
    }
}

/// The others have put more than there is credit for, short ones or long ones, and sleep.
#[test]
fn a_rank_that_fails_while_others_wait_for_credit() {
    for len in [1, 2 * common::COPIED] {
        let config = Config { credits: 2, ..common::unwatched(3, 1) };
        let ends = common::run_all(config, |ctx| async move {
            let values = common::array(&ctx, vec![0u64; len])?;
            ctx.register_local(&values)?;
            let slot = ctx.register_global(&common::array(&ctx, vec![0u64; len])?).await?;
            if ctx.rank() == Rank(0) {
                ctx.group().wait_for(Duration::from_millis(50)).await;
                return Err(Error::NoSuchSlot { slot: 99 });
            }
            for _ in 0..100 {
                ctx.put(&values.all(), slot.at(Rank(0), 0))?;
            }
            ctx.sync(SyncMode::msg(0)).await?;
            ctx.group().wait().await?;
            Ok::<(), Error>(())
        });
        assert!(ends.iter().all(Result::is_err), "{ends:?}");
    }
}

/// The others are in the middle of puts to each other and to the one that fails.
#[test]
fn a_rank_that_fails_under_traffic() {
    for failing_round in [0, 1, 7, 50] {
        for len in [1, 1_000, 1_000_000] {
            let ends = common::run_all(common::unwatched(3, 1), |ctx| async move {
                let values = common::array(&ctx, vec![1u8; len])?;
                ctx.register_local(&values)?;
                let inbox = Array::new(ctx.group(), vec![0u8; 3 * len], len)?;
                let slot = ctx.register_global(&inbox).await?;
                for round in 0.. {
                    if ctx.rank() == Rank(1) && round == failing_round {
                        return Err(Error::NoSuchSlot { slot: 99 });
                    }
                    for peer in 0..3 {
                        let at = ctx.rank().0 as usize * len;
                        ctx.put(&values.all(), slot.at(Rank(peer), at))?;
                    }
                    let mode = SyncMode::msg(3);
                    ctx.sync(mode).window(&inbox.all()).await?;
                }
                Ok(())
            });
            assert!(ends.iter().all(Result::is_err), "round {failing_round}");
            assert!(matches!(ends[1], Err(Error::NoSuchSlot { slot: 99 })), "{:?}", ends[1]);
        }
    }
}

#[test]
fn a_rank_that_fails_once_others_are_done() {
    let gate = Gate::default();
    let ends = common::run_all(common::unwatched(3, 1), |ctx| {
        let gate = gate.clone();
        async move {
            if ctx.rank() == Rank(2) {
                gate.passed().await;
                return Err(Error::NoSuchSlot { slot: 99 });
            }
            gate.open();
            Ok(())
        }
    });
    assert!(ends.iter().all(Result::is_err));
    assert!(matches!(ends[2], Err(Error::NoSuchSlot { slot: 99 })), "{:?}", ends[2]);
}
