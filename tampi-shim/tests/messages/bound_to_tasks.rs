use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use talpf_runtime::Array;
use tampi_shim::{
    ANY_SOURCE, ANY_TAG, Communicator, Error, Rank, Status, Tag, iwait, iwait_status,
    iwaitall_statuses,
};

use crate::common::{config, run, run_on_workers};

/// Every rank adds one to what its left neighbour sends and passes it on, all in tasks.
async fn around(world: Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank().0, world.size());
    let (left, right) = (Rank((rank + size - 1) % size), Rank((rank + 1) % size));
    let value = Array::new(world.group(), vec![0u64; 4], 4)?;
    for round in 0..5 {
        if rank > 0 || round > 0 {
            let world = world.clone();
            let task = world.group().task("receive").output(&value.all());
            task.spawn({
                let world = world.clone();
                move |value| iwait(world.irecv(value, left, Tag(3))).expect("in a task")
            })?;
        }
        let task = world.group().task("add").inout(&value.all());
        task.spawn(|mut value| value.iter_mut().for_each(|value| *value += 1))?;
        let task = world.group().task("send").input(&value.all());
        task.spawn({
            let world = world.clone();
            move |value| iwait(world.isend(value, right, Tag(3))).expect("in a task")
        })?;
    }
    let last = world.group().task("read").input(&value.all()).run(|value| value.to_vec())?.await?;
    assert_eq!(last, [u64::from(4 * size + rank + 1); 4]);
    if rank == 0 {
        let (_, status) = world.recv(vec![0u64; 4], left, Tag(3)).await?;
        assert_eq!(status.elements::<u64>(), Some(4));
    }
    Ok(())
}

#[test]
fn tasks_complete_when_their_messages_do() {
    for ranks in [1, 2, 8] {
        run_on_workers(ranks, around);
    }
}

/// Receives by any source and tag in tasks; other tasks read the statuses.
async fn with_statuses(world: Communicator) -> Result<(), Error> {
    let (group, size) = (world.group().clone(), world.size());
    let known = |status: &Status| (status.source.0, status.tag.0, status.elements::<u32>());
    let values = Array::new(&group, vec![0u32; 3000], 1000)?;
    let statuses = Array::new(&group, vec![Status::default(); 3], 3)?;
    let from = world.clone();
    let task = group.task("receive").output(&values.tile(0)).output(&statuses.region(..1));
    task.spawn(move |value, status| {
        iwait_status(from.irecv(value, ANY_SOURCE, ANY_TAG), status).expect("in a task");
    })?;
    let from = world.clone();
    let task = group.task("receive two").output([values.tile(1), values.tile(2)]);
    task.output(&statuses.region(1..)).spawn(move |values, statuses| {
        let requests = values.into_iter().zip([Tag(2), Tag(3)]);
        let requests = requests.map(|(value, tag)| from.irecv(value, ANY_SOURCE, tag));
        iwaitall_statuses(requests, statuses).expect("in a task");
    })?;
    let read = group.task("read").input(&statuses.all());
    let read = read.run(move |statuses| statuses.iter().map(known).collect::<Vec<_>>())?;
    let next = Rank((world.rank().0 + 1) % size);
    // Short and long, and not in the order of the receives.
    for (tag, length) in [(1, 7), (3, 900), (2, 0)] {
        world.send(vec![tag; length], next, Tag(tag)).await?;
    }
    let last = (world.rank().0 + size - 1) % size;
    assert_eq!(read.await?, [(last, 1, Some(7)), (last, 2, Some(0)), (last, 3, Some(900))]);
    Ok(())
}

#[test]
fn the_status_of_a_bound_receive_is_there_for_the_next_tasks() {
    for ranks in [1, 3] {
        run_on_workers(ranks, with_statuses);
    }
}

#[test]
fn the_status_of_a_bound_receive_that_failed_is_undefined() {
    let ran = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ran);
    let program = move |world: Communicator| {
        let flag = Arc::clone(&flag);
        async move {
            let (group, here) = (world.group().clone(), world.rank());
            let statuses = Array::new(&group, vec![Status::default(); 2], 2)?;
            let from = world.clone();
            group.task("receive").output(&statuses.all()).spawn(move |statuses| {
                let requests = [Tag(0), Tag(1)].map(|tag| from.irecv(vec![0u8; 1], here, tag));
                iwaitall_statuses(requests, statuses).expect("in a task");
            })?;
            let after = group.task("after").input(&statuses.all());
            after.spawn(move |_| flag.store(true, Ordering::SeqCst))?;
            world.send(vec![1u8; 2], here, Tag(1)).await?;
            world.send(vec![1u8; 1], here, Tag(0)).await?;
            Ok(group.wait().await?)
        }
    };
    let error = run(config(1, 2), program).expect_err("too long").to_string();
    assert!(error.contains("receive") && error.contains("after"), "{error}");
    assert!(!ran.load(Ordering::SeqCst));
}

#[test]
fn requests_without_a_place_for_their_status_are_refused() {
    let program = async |world: Communicator| {
        let (group, here) = (world.group().clone(), world.rank());
        let statuses = Array::new(&group, vec![Status::default(); 1], 1)?;
        let task = group.task("receive").output(&statuses.all());
        let refused = task.run(move |statuses| {
            let requests = [Tag(0), Tag(1)].map(|tag| world.irecv(vec![0u8; 1], here, tag));
            iwaitall_statuses(requests, statuses).expect_err("two of one").to_string()
        })?;
        let text = "number of requests with a status is 2, expected at most 1";
        assert_eq!(refused.await?, text);
        Ok(())
    };
    run(config(1, 2), program).expect("the program");
}
