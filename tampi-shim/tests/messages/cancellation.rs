use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use talpf_runtime::Array;
use tampi_shim::{ANY_SOURCE, Communicator, Error, Rank, Tag, iwait};

use crate::common::{config, nothing_is_left, run_on_workers, run_well, with_protocols};

async fn some_of_three(world: Communicator) -> Result<(), Error> {
    let other = Rank(world.size() - 1 - world.rank().0);
    let receives = [
        world.irecv(vec![0u32], other, Tag(0)),
        world.irecv(vec![0u32], ANY_SOURCE, Tag(0)),
        world.irecv(vec![0u32], other, Tag(0)),
    ];
    receives[0].cancel();
    receives[1].cancel();
    let ready = vec![0u8; 0];
    world.sendrecv((ready.clone(), other, Tag(1)), (ready, other, Tag(1))).await?;
    world.send(vec![7u32], other, Tag(0)).await?;
    let [first, second, third] = receives;
    for cancelled in [first, second] {
        let (buffer, status) = cancelled.await?;
        assert!(status.is_cancelled() && buffer == [0]);
    }
    let (buffer, status) = third.await?;
    assert!(!status.is_cancelled() && buffer == [7]);
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn a_cancelled_receive_takes_no_message() {
    for ranks in [1, 2] {
        run_on_workers(ranks, some_of_three);
    }
}

async fn cancelled_late(world: Communicator) -> Result<(), Error> {
    let send = world.isend(vec![1u32], world.rank(), Tag(0));
    let receive = world.irecv(vec![0u32], world.rank(), Tag(0));
    send.await?;
    receive.cancel();
    let (buffer, status) = receive.await?;
    assert!(status.is_cancelled() || buffer == [1], "{status:?}");
    if status.is_cancelled() {
        world.recv(vec![0u32], world.rank(), Tag(0)).await?;
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn a_receive_is_either_cancelled_or_done() {
    run_on_workers(1, cancelled_late);
}

/// A request that is dropped goes on and keeps its buffer.
async fn dropped(world: Communicator) -> Result<(), Error> {
    let other = Rank(world.size() - 1 - world.rank().0);
    let values = Array::new(world.group(), vec![0u32; 4], 4)?;
    let is_early = Arc::new(AtomicBool::new(true));
    let receive = world.group().task("receive").output(&values.all());
    receive.spawn({
        let world = world.clone();
        move |values| drop(world.irecv(values, other, Tag(0)))
    })?;
    let read = world.group().task("read").input(&values.all());
    let read = read.run({
        let is_early = Arc::clone(&is_early);
        move |values| (values.to_vec(), is_early.load(Ordering::SeqCst))
    })?;
    world.send(vec![0u8; 0], other, Tag(1)).await?;
    world.recv(vec![0u8; 0], other, Tag(1)).await?;
    is_early.store(false, Ordering::SeqCst);
    world.send(vec![other.0 + 1; 4], other, Tag(0)).await?;
    let (values, was_early) = read.await?;
    assert_eq!(values, [world.rank().0 + 1; 4]);
    assert!(!was_early || world.size() > 1, "the region was in use until the message came");
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn a_dropped_request_keeps_its_region() {
    for ranks in [1, 2] {
        run_on_workers(ranks, dropped);
    }
}

/// Operations that are bound to a task may end after its body; its successors wait for them.
async fn bound(world: Communicator) -> Result<(), Error> {
    let values = Array::new(world.group(), vec![0u64; 100], 10)?;
    for tile in 0..10 {
        let task = world.group().task("receive").output(&values.tile(tile));
        let world = world.clone();
        task.spawn(move |values| {
            let me = world.rank();
            iwait(world.irecv(values, me, Tag(tile as u32))).expect("in a task");
        })?;
    }
    let sum = world.group().task("sum").input(&values.all());
    let sum = sum.run(|values| values.iter().sum::<u64>())?;
    for tile in (0..10u64).rev() {
        let me = world.rank();
        world.send(vec![tile + 1; 10], me, Tag(tile as u32)).await?;
    }
    assert_eq!(sum.await?, 550);
    Ok(())
}

#[test]
fn successors_wait_for_all_messages() {
    run_on_workers(2, bound);
}

/// Receives whose RTR was sent are cancelled at their source first; a message that was sent
/// meanwhile still arrives.
async fn cancel_after_rtr(world: Communicator) -> Result<(), Error> {
    const LENGTH: usize = 10_000;
    let other = Rank(world.size() - 1 - world.rank().0);
    for round in 0..20 {
        let tag = Tag(round);
        let cancelled = world.irecv(vec![0u8; LENGTH], other, tag);
        cancelled.cancel();
        let (buffer, status) = cancelled.await?;
        assert!(status.is_cancelled() && buffer.len() == LENGTH);
        let ready = vec![0u8; 0];
        world.sendrecv((ready.clone(), other, Tag(100)), (ready, other, Tag(100))).await?;
        // These meet their messages at any time.
        let receives = [
            world.irecv(vec![0u8; LENGTH], other, tag),
            world.irecv(vec![0u8; LENGTH], other, tag),
        ];
        let sends = [
            world.isend(vec![1u8; LENGTH], other, tag),
            world.isend(vec![2u8; LENGTH], other, tag),
        ];
        receives[1].cancel();
        let [first, second] = receives;
        assert_eq!(first.await?.0, [1; LENGTH]);
        let (buffer, status) = second.await?;
        assert!(status.is_cancelled() || buffer == [2; LENGTH]);
        if status.is_cancelled() {
            assert_eq!(world.recv(buffer, other, tag).await?.0, [2; LENGTH]);
        }
        for send in sends {
            send.await?;
        }
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn a_receive_whose_rtr_was_sent_is_cancelled() {
    for ranks in [1, 2] {
        for workers in [1, 2, 8] {
            run_well(with_protocols(config(ranks, workers), 200, 1000), cancel_after_rtr);
        }
    }
}
