//! A rank that fails, in whatever way, ends the run with an error that names it, whatever the
//! other ranks wait for. There is no hang watch here: nothing else would end these runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{self, Gate};
use talpf::{Context, Error, MemorySlot, Rank, SyncMode};
use talpf_runtime::Array;

/// The waits of the ranks other than 0, which never end by themselves.
#[derive(Clone, Copy, Debug)]
enum Wait {
    MsgSync,
    DefaultSync,
    Barrier,
    Get,
    ParkedPut,
    PutInBody,
    Group,
    Registration,
    Superstep,
}

const WAITS: [Wait; 9] = [
    Wait::MsgSync,
    Wait::DefaultSync,
    Wait::Barrier,
    Wait::Get,
    Wait::ParkedPut,
    Wait::PutInBody,
    Wait::Group,
    Wait::Registration,
    Wait::Superstep,
];

/// The failure of rank 0.
#[derive(Clone, Copy, Debug)]
enum Failure {
    MainReturns,
    MainPanics,
    TaskBeforePut,
    TaskBeforeWindow,
    TaskOfBody,
    Cancels,
}

/// The waits of ranks that put to rank 0 or nothing, which has a window when it fails.
const PUTS: [Wait; 8] = [
    Wait::MsgSync,
    Wait::DefaultSync,
    Wait::Barrier,
    Wait::ParkedPut,
    Wait::PutInBody,
    Wait::Group,
    Wait::Registration,
    Wait::Superstep,
];

/// The arrays of a rank.
struct Own {
    values: Array<u64>,
    inbox: Array<u64>,
    slot: MemorySlot<u64>,
}

async fn wait(ctx: &Context, own: &Own, wait: Wait) -> Result<(), Error> {
    let Own { values, inbox, slot } = own;
    let there = slot.at(Rank(0), 0);
    match wait {
        Wait::MsgSync => ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await,
        Wait::DefaultSync => ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await,
        Wait::Barrier => ctx.sync(SyncMode::msg(0).with_barrier()).expose(&inbox.all()).await,
        Wait::Get => {
            ctx.get(there, &values.all())?;
            ctx.sync(SyncMode::msg(0)).await?;
            common::read(ctx, values).await.map(drop)
        }
        Wait::ParkedPut => {
            ctx.put(&values.all(), there)?;
            ctx.sync(SyncMode::msg(0)).await?;
            let change = ctx.group().task("change").inout(&values.all());
            Ok(change.run(drop)?.await?)
        }
        Wait::PutInBody => {
            let (round, slot) = (ctx.round(), slot.clone());
            let task = ctx.group().task("put").input(&values.all());
            let put = task.run_async(move |values| async move {
                round.put(values, slot.at(Rank(0), 0)).await.map(drop)
            })?;
            put.await?
        }
        Wait::Group => {
            ctx.put(&values.all(), there)?;
            ctx.sync(SyncMode::msg(7)).window(&inbox.all()).spawn()?;
            Ok(ctx.group().wait().await?)
        }
        Wait::Registration => ctx.register_global(values).await.map(drop),
        Wait::Superstep => {
            let mut bsp = ctx.bsp();
            bsp.put(&values.region(..1), there)?;
            bsp.sync().await
        }
    }
}

async fn fail(ctx: &Context, own: &Own, failure: Failure) -> Result<(), Error> {
    let Own { values, inbox, slot } = own;
    let broken = match failure {
        Failure::MainReturns => return Err(Error::NoSuchSlot { slot: 99 }),
        Failure::MainPanics => panic!("the main is broken"),
        Failure::Cancels => {
            let sync = ctx.sync(SyncMode::msg(9)).window(&inbox.all()).spawn()?;
            ctx.group().cancel("on purpose");
            assert!(sync.await.is_err(), "nothing arrives");
            return Ok(ctx.group().wait().await?);
        }
        Failure::TaskBeforePut | Failure::TaskOfBody => values,
        Failure::TaskBeforeWindow => inbox,
    };
    let task = ctx.group().task("broken").inout(&broken.all());
    task.spawn(|_| panic!("the task is broken"))?;
    match failure {
        Failure::TaskBeforeWindow => {}
        Failure::TaskOfBody => {
            let (round, slot) = (ctx.round(), slot.clone());
            let put = ctx.group().task("body").input(&values.all());
            put.spawn(move |values| drop(round.put(values, slot.at(Rank(1), 0))))?;
            return Ok(ctx.group().wait().await?);
        }
        _ => ctx.put(&values.all(), slot.at(Rank(1), 0))?,
    }
    ctx.sync(SyncMode::msg(9)).window(&inbox.all()).await
}

/// Fails rank 0 once the others are about to wait. Returns the error of `exec`.
fn run(failure: Failure, waiting: Wait) -> Error {
    common::quiet_panics();
    let (gate, seen) = (Gate::default(), Arc::new(Mutex::new(Vec::new())));
    let what = format!("{failure:?}, others wait in {waiting:?}");
    let result = common::run_case(&what, common::unwatched(3, 2), |ctx| {
        let (gate, seen) = (gate.clone(), Arc::clone(&seen));
        async move {
            let inbox = common::array(&ctx, vec![0u64; 100])?;
            let slot = ctx.register_global(&inbox).await?;
            let values = common::array(&ctx, vec![0u64; 100])?;
            ctx.register_local(&values)?;
            let own = Own { values, inbox, slot };
            if ctx.rank() == Rank(0) {
                gate.passed().await;
                return fail(&ctx, &own, failure).await;
            }
            gate.open();
            let ended = wait(&ctx, &own, waiting).await;
            seen.lock().unwrap().push(ended.clone());
            ended
        }
    });
    for ended in seen.lock().unwrap().iter() {
        match ended {
            Err(error) => assert!(error.to_string().contains("rank 0"), "{what}: {error}"),
            // The put has landed, or is given up and with it its source.
            Ok(()) => assert!(matches!(waiting, Wait::ParkedPut | Wait::PutInBody), "{what}"),
        }
    }
    assert_eq!(seen.lock().unwrap().len(), 2, "{what}");
    result.expect_err(&what)
}

#[test]
fn a_main_that_returns_an_error() {
    for wait in WAITS {
        // It came first, so it is what the run ends with.
        common::says(&run(Failure::MainReturns, wait), &["slot 99 does not exist"]);
    }
}

#[test]
fn a_main_that_panics() {
    for wait in WAITS {
        common::says(&run(Failure::MainPanics, wait), &["the main is broken"]);
    }
}

#[test]
fn a_task_that_panics_before_a_put() {
    for wait in PUTS {
        let error = run(Failure::TaskBeforePut, wait);
        common::says(&error, &["an operation was not posted because a task before it failed"]);
    }
}

#[test]
fn a_task_that_panics_before_a_window() {
    for wait in PUTS {
        let error = run(Failure::TaskBeforeWindow, wait);
        common::says(&error, &["because a task before it failed"]);
    }
}

#[test]
fn a_task_that_panics_before_a_body_that_puts() {
    for wait in WAITS {
        let error = run(Failure::TaskOfBody, wait);
        common::says(&error, &["broken"]);
    }
}

#[test]
fn a_rank_whose_tasks_are_cancelled() {
    for wait in PUTS {
        common::says(&run(Failure::Cancels, wait), &["on purpose"]);
    }
}

/// The round behind waits for nothing; it must not end before the one that cannot.
#[test]
fn a_round_that_cannot_end_stops_those_behind_it() {
    let result = common::run(common::unwatched(1, 1), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; 4])?;
        let slot = ctx.register_global(&inbox).await?;
        let values = common::array(&ctx, vec![0u64; 4])?;
        let gate = Gate::default();
        let (passed, broken) = (gate.clone(), ctx.group().task("broken").inout(&values.all()));
        broken.spawn_async(|values| async move {
            passed.passed().await;
            assert!(values.is_empty(), "the task is broken");
        })?;
        ctx.put(&values.all(), slot.at(Rank(0), 0))?;
        let first = ctx.sync(SyncMode::msg(0)).spawn()?;
        let second = ctx.sync(SyncMode::msg(0)).spawn()?;
        gate.open();
        let ends = [first.await, second.await];
        for end in ends {
            common::says(&end.unwrap_err(), &["an operation was not posted"]);
        }
        Ok::<_, Error>(())
    });
    // The main has not awaited the broken task.
    common::says(&result.unwrap_err(), &["broken"]);
}

/// Tests that a region is not read whose puts from the failed rank never came.
#[test]
fn nobody_reads_a_window_of_a_run_that_failed() {
    let (gate, ran) = (Gate::default(), Arc::new(AtomicBool::new(false)));
    let result = common::run(common::unwatched(2, 2), |ctx| {
        let (gate, ran) = (gate.clone(), Arc::clone(&ran));
        async move {
            let inbox = common::array(&ctx, vec![0u64; 4])?;
            ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(0) {
                gate.passed().await;
                return Err(Error::NoSuchSlot { slot: 99 });
            }
            // The region is free, so its window opens at once.
            ctx.sync(SyncMode::msg(1)).window(&inbox.all()).spawn()?;
            let read = ctx.group().task("read").input(&inbox.all());
            read.spawn(move |_| ran.store(true, Ordering::SeqCst))?;
            gate.open();
            Ok(ctx.group().wait().await?)
        }
    });
    common::says(&result.unwrap_err(), &["slot 99 does not exist"]);
    assert!(!ran.load(Ordering::SeqCst), "a task has read what was never put");
}

/// Fails the run before the last request is posted, which would return the guard.
#[test]
fn a_long_put_that_found_the_send_queue_full() {
    const REQUESTS: usize = 600;
    const BYTES: usize = 512;
    let gate = Gate::default();
    let mut config = common::unwatched(2, 1);
    config.device.attributes.max_message_size = BYTES as u32;
    let result = common::run(config, |ctx| {
        let gate = gate.clone();
        async move {
            let inbox = common::array(&ctx, vec![0u8; 3 * REQUESTS * BYTES])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(1) {
                let sync = ctx.sync(SyncMode::msg(3)).window(&inbox.all()).spawn()?;
                gate.open();
                return sync.await;
            }
            let tile = REQUESTS * BYTES;
            let values = Array::new(ctx.group(), vec![1u8; 3 * tile], tile)?;
            ctx.register_local(&values)?;
            gate.passed().await;
            for put in 0..3 {
                ctx.put(&values.tile(put), slot.at(Rank(1), put * tile))?;
            }
            Err(Error::NoSuchSlot { slot: 99 })
        }
    });
    common::says(&result.unwrap_err(), &["slot 99 does not exist"]);
}

#[test]
fn a_main_that_panics_before_it_begins() {
    let started = std::panic::catch_unwind(|| {
        common::run(common::unwatched(2, 2), |ctx| {
            assert!(ctx.rank() == Rank(0), "the second rank is broken");
            async move { ctx.sync(SyncMode::DEFAULT).await }
        })
    });
    let panic = started.unwrap_err();
    let text = panic.downcast_ref::<&str>().unwrap();
    assert_eq!(*text, "the second rank is broken");
}
