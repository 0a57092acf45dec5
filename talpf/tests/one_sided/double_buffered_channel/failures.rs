//! A rank that fails in the middle of a channel ends the run, and nothing hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Ring, refused};
use crate::common::{self, Gate};
use talpf::{Context, Error};

/// Spawns tasks that overwrite the buffers of a round.
fn overwrite(ctx: &Context, ring: &Ring, round: u64) -> Result<(), Error> {
    for link in 0..2 {
        let task = ctx.group().task("overwrite").inout(&ring.buffer(link, round));
        task.spawn(|mut buffer| buffer.fill(u64::MAX))?;
    }
    Ok(())
}

/// The failure of rank 1, in round 5.
#[derive(Clone, Copy, Debug)]
enum Failure {
    MainReturns,
    MainPanics,
    TaskBeforePut,
    /// And goes on with later rounds.
    TaskBeforeManyPuts,
    TaskAfterSync,
    DropsInTheMiddle,
    Forgets,
}

/// Fails once all ranks are in the middle of things; what they spawned must end.
fn fail(failure: Failure, len: usize) -> Error {
    let gate = Gate::default();
    refused(&format!("{failure:?}, {len} elements"), move |ctx, wrong| {
        let gate = gate.clone();
        async move {
            let mut ring = Ring::new(&ctx, len).await?;
            for round in 0..5 {
                ring.round(&ctx, round, 1, Duration::from_micros(20))?;
                overwrite(&ctx, &ring, round)?;
            }
            if !wrong {
                gate.open();
                for round in 5..8 {
                    ring.round(&ctx, round, 0, Duration::ZERO)?;
                    overwrite(&ctx, &ring, round)?;
                }
                return ctx.group().wait().await.map_err(Error::from);
            }
            gate.passed().await;
            ring.put(0)?;
            match failure {
                Failure::MainReturns => return Err(Error::NoSuchSlot { slot: 99 }),
                Failure::MainPanics => panic!("the main is broken"),
                Failure::DropsInTheMiddle => return Ok(()),
                Failure::Forgets => {
                    std::mem::forget(ring);
                    return Err(Error::NoSuchSlot { slot: 99 });
                }
                Failure::TaskBeforePut | Failure::TaskBeforeManyPuts => {
                    let task = ctx.group().task("broken").inout(&ring.values.tile(1));
                    task.spawn(|_| panic!("the task is broken"))?;
                }
                Failure::TaskAfterSync => {}
            }
            ring.put(1)?;
            let sync = ring.channel().sync()?;
            if matches!(failure, Failure::TaskAfterSync) {
                let task = ctx.group().task("broken").inout(&ring.buffer(0, 5));
                task.spawn(|_| panic!("the task is broken"))?;
            }
            if !matches!(failure, Failure::TaskBeforePut) {
                for round in 6..9 {
                    ring.round(&ctx, round, 0, Duration::ZERO)?;
                }
            }
            sync.await?;
            ctx.group().wait().await.map_err(Error::from)
        }
    })
}

#[test]
fn a_rank_that_fails_in_the_middle() {
    let cases = [
        (Failure::MainReturns, "slot 99 does not exist"),
        (Failure::Forgets, "slot 99 does not exist"),
        (Failure::MainPanics, "the main is broken"),
        (Failure::TaskBeforePut, "because a task before it failed"),
        (Failure::TaskBeforeManyPuts, "failed"),
        (Failure::TaskAfterSync, "failed"),
        (Failure::DropsInTheMiddle, "dropped in the middle of a round"),
    ];
    for _ in 0..10 {
        for len in [4, 2_000] {
            for (failure, says) in cases {
                common::says(&fail(failure, len), &[says]);
            }
        }
    }
}

/// The buffers are held from the beginning, and nothing comes.
#[test]
fn nobody_reads_a_buffer_of_a_run_that_failed() {
    let (gate, ran) = (Gate::default(), Arc::new(AtomicBool::new(false)));
    let run = common::run(common::unwatched(2, 2), |ctx| {
        let (gate, ran) = (gate.clone(), Arc::clone(&ran));
        async move {
            let mut ring = Ring::new(&ctx, 4).await?;
            if ctx.rank().0 == 0 {
                gate.passed().await;
                // Its drop would end the wait of the other rank before the failure does.
                std::mem::forget(ring);
                return Err(Error::NoSuchSlot { slot: 99 });
            }
            ring.round(&ctx, 0, 0, Duration::ZERO)?;
            let read = ctx.group().task("read").input(&ring.buffer(0, 0));
            read.spawn(move |_| ran.store(true, Ordering::SeqCst))?;
            gate.open();
            Ok(ctx.group().wait().await?)
        }
    });
    common::says(&run.unwrap_err(), &["slot 99 does not exist"]);
    assert!(!ran.load(Ordering::SeqCst), "a task has read what was never put");
}

/// A rank stops a round before the others: the hang watch reports the missing puts.
#[test]
fn a_rank_that_stops_early_is_reported() {
    let run = common::run(common::watched(2, 2), |ctx| async move {
        let mut ring = Ring::new(&ctx, 4).await?;
        for round in 0..3 + u64::from(ctx.rank().0) {
            ring.round(&ctx, round, 0, Duration::ZERO)?;
        }
        Ok::<_, Error>(())
    });
    common::says(&run.unwrap_err(), &["2 missing from rank 0"]);
}
