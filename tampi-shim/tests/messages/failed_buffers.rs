use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use talpf_runtime::Array;
use tampi_shim::{Communicator, Error, Rank, Request, Tag, iwait};

use crate::common::{config, run};

/// Use of a request by the task that has started it.
#[derive(Clone, Copy, Debug)]
enum RequestUse {
    /// Awaits the request, and continues after an error.
    Awaits,
    Drops,
    Binds,
}

/// Fails a receive into a region and sets `ran` if a task runs that depends on that region.
async fn fills(
    world: Communicator,
    request_use: RequestUse,
    ran: Arc<AtomicBool>,
) -> Result<(), Error> {
    let (group, here) = (world.group().clone(), world.rank());
    let values = Array::new(&group, vec![0u32; 2], 2)?;
    world.send(vec![1u32; 3], here, Tag(0)).await?;
    let comm = world.clone();
    group.task("receive").output(&values.all()).spawn_async(move |values| async move {
        let request: Request<_> = comm.irecv(values, here, Tag(0));
        match request_use {
            RequestUse::Awaits => {
                let error = request.await.map(drop).expect_err("the message is too long");
                assert!(matches!(error, Error::Truncated { .. }), "{error}");
            }
            RequestUse::Drops => drop(request),
            RequestUse::Binds => iwait(request).expect("in a task"),
        }
    })?;
    let task = group.task("after").input(&values.all());
    task.spawn(move |_| ran.store(true, Ordering::SeqCst))?;
    Ok(group.wait().await?)
}

#[test]
fn what_depends_on_a_receive_that_failed_does_not_run() {
    for request_use in [RequestUse::Awaits, RequestUse::Drops, RequestUse::Binds] {
        let ran = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ran);
        let ended = run(config(1, 2), move |world| fills(world, request_use, Arc::clone(&flag)));
        let error = ended.expect_err("a task failed").to_string();
        assert!(error.contains("receive") && error.contains("after"), "{request_use:?}: {error}");
        assert!(!ran.load(Ordering::SeqCst), "{request_use:?}");
    }
}

/// As `fills`, with the guard of one task in a request that another one binds.
async fn fills_for_another(world: Communicator, ran: Arc<AtomicBool>) -> Result<(), Error> {
    let (group, here) = (world.group().clone(), world.rank());
    let values = Array::new(&group, vec![0u32; 2], 2)?;
    world.send(vec![1u32; 3], here, Tag(0)).await?;
    let guard = group.task("declares").output(&values.all()).run(|values| values)?.await?;
    let comm = world.clone();
    group.task("receives").spawn(move || {
        iwait(comm.irecv(guard, here, Tag(0))).expect("in a task");
    })?;
    let task = group.task("after").input(&values.all());
    task.spawn(move |_| ran.store(true, Ordering::SeqCst))?;
    Ok(group.wait().await?)
}

#[test]
fn a_bound_receive_that_failed_fails_the_task_whose_guard_it_has() {
    let ran = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ran);
    let ended = run(config(1, 2), move |world| fills_for_another(world, Arc::clone(&flag)));
    assert!(ended.is_err());
    assert!(!ran.load(Ordering::SeqCst));
}

/// Two elements gathered into room for one.
async fn gathers(world: Communicator, ran: Arc<AtomicBool>) -> Result<(), Error> {
    let group = world.group().clone();
    let values = Array::new(&group, vec![0u32; 1], 1)?;
    let comm = world.clone();
    group.task("gather").output(&values.all()).spawn_async(move |values| async move {
        let ended = comm.iallgather(vec![1u32; 2], values).await;
        assert!(ended.is_err(), "there is no room");
    })?;
    let task = group.task("after").input(&values.all());
    task.spawn(move |_| ran.store(true, Ordering::SeqCst))?;
    Ok(group.wait().await?)
}

#[test]
fn what_depends_on_a_collective_that_failed_does_not_run() {
    let ran = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ran);
    let ended = run(config(1, 2), move |world| gathers(world, Arc::clone(&flag)));
    assert!(ended.is_err());
    assert!(!ran.load(Ordering::SeqCst));
}

/// A send that fails has changed nothing.
async fn sends(world: Communicator) -> Result<u32, Error> {
    let group = world.group().clone();
    let values = Array::new(&group, vec![7u32; 2], 2)?;
    group.task("send").inout(&values.all()).spawn_async(move |values| async move {
        let error = world.isend(values, Rank(9), Tag(0)).await.map(drop).expect_err("no such rank");
        assert!(matches!(error, Error::NoSuchRank { rank: Rank(9), .. }), "{error}");
    })?;
    Ok(group.task("after").input(&values.all()).run(|values| values[1])?.await?)
}

#[test]
fn a_send_that_failed_leaves_its_region_as_it_was() {
    assert_eq!(run(config(1, 2), sends).unwrap(), [7]);
}
