use std::time::Duration;

use proptest::prelude::*;
use talpf_runtime::Array;
use tampi_shim::operator::{Max, Sum};
use tampi_shim::{Communicator, Error, Rank, Request, Tag, iwait};

use crate::common::run;

/// A collective under way among several.
#[derive(Clone, Copy, Debug)]
enum Collective {
    Broadcast(usize),
    Allreduce,
    Allgather,
    Scan,
    Barrier,
}

enum Started {
    InPlace(Request<Vec<u64>>, Vec<u64>),
    Between(Request<(Vec<u64>, Vec<u64>)>, Vec<u64>),
    Barrier(Request<()>),
}

fn kinds() -> impl Strategy<Value = Vec<Collective>> {
    let kind = prop_oneof![
        (0..9usize).prop_map(Collective::Broadcast),
        Just(Collective::Allreduce),
        Just(Collective::Allgather),
        Just(Collective::Scan),
        Just(Collective::Barrier),
    ];
    prop::collection::vec(kind, 1..30)
}

/// Starts `kind` as the `number`-th.
fn start(world: &Communicator, kind: Collective, number: u64) -> Started {
    let (rank, size) = (u64::from(world.rank().0), u64::from(world.size()));
    let of = |rank: u64| 1000 * number + rank;
    match kind {
        Collective::Broadcast(root) => {
            let root = root as u64 % size;
            let request = world.ibroadcast(vec![of(rank)], Rank(root as u32));
            Started::InPlace(request, vec![of(root)])
        }
        Collective::Allreduce => {
            Started::InPlace(world.iallreduce(vec![of(rank)], Max), vec![of(size - 1)])
        }
        Collective::Allgather => {
            let request = world.iallgather(vec![of(rank)], vec![0; size as usize]);
            Started::Between(request, (0..size).map(of).collect())
        }
        Collective::Scan => {
            Started::InPlace(world.iscan(vec![of(rank)], Sum), vec![(0..=rank).map(of).sum()])
        }
        Collective::Barrier => Started::Barrier(world.ibarrier()),
    }
}

/// Starts all, in the same order everywhere, and waits in an order that differs by rank. Messages
/// of the program's own with the tags of the first collectives do not disturb.
async fn all_at_once(world: Communicator, kinds: Vec<Collective>) -> Result<(), Error> {
    let next = Rank((world.rank().0 + 1) % world.size());
    let own: Vec<_> = (0..4).map(|tag| world.isend(vec![u64::from(tag)], next, Tag(tag))).collect();
    let numbered = kinds.into_iter().zip(0..);
    let mut started: Vec<Started> =
        numbered.map(|(kind, number)| start(&world, kind, number)).collect();
    let shift = world.rank().0 as usize % started.len();
    started.rotate_left(shift);
    if world.rank().0 % 2 == 1 {
        started.reverse();
    }
    for started in started {
        match started {
            Started::InPlace(request, expected) => assert_eq!(request.await?.0, expected),
            Started::Between(request, expected) => assert_eq!(request.await?.0.1, expected),
            Started::Barrier(request) => request.await?.0,
        }
    }
    let previous = Rank((world.rank().0 + world.size() - 1) % world.size());
    for tag in 0..4 {
        let (message, _) = world.recv(vec![0u64], previous, Tag(tag)).await?;
        assert_eq!(message, [u64::from(tag)]);
    }
    for send in own {
        send.await?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn collectives_under_way_do_not_disturb_each_other(kinds in kinds(), ranks in 1..=9usize) {
        run(ranks, move |world| all_at_once(world, kinds.clone())).expect("the program");
    }
}

#[test]
fn any_number_of_collectives_may_end_at_once() {
    // Rank 0 starts last, so that all sums of the others wait for it.
    const MANY: u64 = 20_000;
    run(4, async |world| {
        let late = world.rank() == Rank(0);
        if late {
            world.recv(vec![0u8], Rank(3), Tag(1)).await?;
        }
        let started: Vec<_> = (0..MANY).map(|n| world.iallreduce(vec![n], Sum)).collect();
        if world.rank() == Rank(3) {
            world.send(vec![0u8], Rank(0), Tag(1)).await?;
        }
        for (request, n) in started.into_iter().zip(0..) {
            assert_eq!(request.await?.0, [4 * n]);
        }
        Ok(())
    })
    .expect("the program");
}

/// Each of many inline tasks starts a collective where that of the task before has ended, so on a
/// thread that ends messages. Those of many communicators end inside each other.
async fn chains(world: Communicator) -> Result<(), Error> {
    const LENGTH: u64 = 20;
    let group = world.group().clone();
    let mut sums = Vec::new();
    for _ in 0..200 {
        let comm = world.duplicate().await?;
        let value = Array::new(&group, vec![1u64], 1)?;
        for _ in 0..LENGTH {
            let comm = comm.clone();
            group.task("sum").inline().inout(&value.all()).spawn(move |value| {
                iwait(comm.iscan(value, Max)).expect("in a task");
            })?;
            group.task("add").inline().inout(&value.all()).spawn(|mut value| value[0] += 1)?;
        }
        sums.push(value);
    }
    for value in sums {
        let sum = group.task("read").input(&value.all()).run(|value| value[0])?;
        assert_eq!(sum.await?, LENGTH + 1);
    }
    Ok(())
}

#[test]
fn a_collective_may_start_where_another_ends() {
    for ranks in [1, 2, 5] {
        run(ranks, chains).expect("the program");
    }
}

/// A collective that fails ends others, whose ends start more.
#[test]
fn a_collective_that_fails_may_end_others() {
    let program = async |world: Communicator| {
        let (group, own) = (world.group().clone(), world.duplicate().await?);
        let values = Array::new(&group, vec![1u64; 100], 1)?;
        for tile in 0..100 {
            for _ in 0..2 {
                // Nobody but rank 0 takes part.
                if world.rank() == Rank(0) {
                    let own = own.clone();
                    let task = group.task("sum").inline().inout(&values.tile(tile));
                    task.spawn(move |value| iwait(own.iallreduce(value, Sum)).expect("in a task"))?;
                }
            }
        }
        let never = |_: u64, _: u64| -> u64 { std::panic::panic_any("an operator's panic") };
        world.allreduce(vec![1u64], never).await.map(drop)
    };
    let error = run(3, program).expect_err("the operator panics").to_string();
    assert!(error.contains("the operator of allreduce panicked"), "{error}");
}

#[test]
fn a_collective_that_is_let_go_goes_on() {
    run(4, async |world| {
        for round in 0..10u64 {
            drop(world.iallreduce(vec![round; 100], Sum));
            let sum = world.allreduce(vec![round], Sum).await?;
            assert_eq!(sum, [4 * round]);
        }
        world.barrier().await
    })
    .expect("the program");
}

#[test]
fn no_message_is_slept_through() {
    // Pauses about as long as polling tasks poll before they sleep.
    run(6, async |world| {
        for round in 0..2_000u64 {
            let pause = (round * 7 + u64::from(world.rank().0) * 3) % 41;
            world.group().wait_for(Duration::from_micros(pause)).await;
            assert_eq!(world.allreduce(vec![round], Max).await?, [round]);
        }
        Ok(())
    })
    .expect("the program");
}
