use talpf_runtime::Array;
use tampi_shim::{ANY_SOURCE, ANY_TAG, Communicator, Error, Rank, Tag, iwait};

use crate::common::{config, run};

fn failed() -> Error {
    Error::Setting { name: "this", value: "rank".into(), expected: "to live" }
}

/// The last rank fails; every other waits for something that will not come.
async fn last_fails(world: Communicator) -> Result<(), Error> {
    let last = Rank(world.size() - 1);
    if world.rank() == last {
        for rank in 0..last.0 {
            world.send(vec![0u8], Rank(rank), Tag(0)).await?;
        }
        return Err(failed());
    }
    world.recv(vec![0u8], last, Tag(0)).await?;
    let error = match world.rank().0 % 4 {
        0 => world.recv(vec![0u8], last, Tag(1)).await.map(drop),
        1 => world.recv(vec![0u8], ANY_SOURCE, ANY_TAG).await.map(drop),
        2 => world.ssend(vec![0u8; 100_000], last, Tag(1)).await.map(drop),
        _ => world.probe(ANY_SOURCE, Tag(9)).await.map(drop),
    };
    let error = error.expect_err("the peer is dead");
    let Error::PeerFailed { rank, reason } = &error else { panic!("{error}") };
    assert_eq!((*rank, reason.as_str()), (last, failed().to_string().as_str()));
    let later = world.send(vec![0u8], last, Tag(2)).await.expect_err("and stays so");
    assert!(matches!(later, Error::PeerFailed { .. }), "{later}");
    Err(error)
}

#[test]
fn everybody_who_waits_learns_which_rank_failed() {
    for workers in [1, 2, 8] {
        let error = run(config(5, workers), last_fails).expect_err("a rank fails");
        assert!(error.to_string().contains("to live"), "{error}");
    }
}

async fn last_panics(world: Communicator) -> Result<(), Error> {
    let last = Rank(world.size() - 1);
    assert!(world.rank() != last, "on purpose");
    let error = world.recv(vec![0u8], last, Tag(1)).await.expect_err("the peer is dead");
    assert!(matches!(error, Error::PeerFailed { rank, .. } if rank == last), "{error}");
    Err(error)
}

#[test]
fn a_rank_that_panics_is_named() {
    for workers in [1, 2] {
        let error = run(config(3, workers), last_panics).expect_err("a rank panics");
        assert!(matches!(error, Error::Runtime(_)), "the panic is the cause: {error}");
    }
}

/// The last rank cancels its tasks, which wait for messages that do not come, or are bound to some.
async fn last_cancels(world: Communicator) -> Result<(), Error> {
    let last = Rank(world.size() - 1);
    if world.rank() != last {
        let error = world.recv(vec![0u8], last, Tag(1)).await.expect_err("the peer is dead");
        assert!(error.to_string().contains("on purpose"), "{error}");
        return Err(error);
    }
    let values = Array::new(world.group(), vec![0u64; 4], 2)?;
    let bound = world.group().task("bound").output(&values.tile(0));
    let bound = bound.run({
        let world = world.clone();
        move |values| iwait(world.irecv(values, Rank(0), Tag(0))).expect("in a task")
    })?;
    bound.await?;
    let waits = world.group().task("waits").output(&values.tile(1));
    waits.spawn_async({
        let world = world.clone();
        async move |values| {
            let _ = world.recv(values, Rank(0), Tag(0)).await;
        }
    })?;
    world.group().task("never").inout(&values.all()).spawn(|_| panic!("ran"))?;
    world.group().cancel("on purpose");
    let error = world.group().wait().await.expect_err("it is cancelled");
    assert_eq!(error.to_string(), format!("{last} was cancelled: on purpose"));
    Err(Error::from(error))
}

#[test]
fn the_operations_of_a_cancelled_rank_end() {
    for workers in [1, 2] {
        let error = run(config(3, workers), last_cancels).expect_err("a rank is cancelled");
        assert!(error.to_string().contains("on purpose"), "{error}");
    }
}

/// A task that is bound to a message too long for it fails, and so do its successors.
async fn bound_too_short(world: Communicator) -> Result<(), Error> {
    let values = Array::new(world.group(), vec![0u64; 4], 4)?;
    let me = world.rank();
    let receive = world.group().task("receive").output(&values.all());
    receive.spawn({
        let world = world.clone();
        move |values| iwait(world.irecv(values, me, Tag(0))).expect("in a task")
    })?;
    world.group().task("use").input(&values.all()).spawn(|_| panic!("on undefined data"))?;
    world.send(vec![0u64; 5], me, Tag(0)).await?;
    let error = world.group().wait().await.expect_err("the receive fails its task");
    let text = error.to_string();
    assert!(text.contains("receive") && text.contains("40 bytes"), "{text}");
    Ok(())
}

#[test]
fn an_error_fails_the_bound_task_and_its_successors() {
    for workers in [1, 2] {
        run(config(1, workers), bound_too_short).unwrap();
    }
}
