//! Communicators made of others.

use tampi_shim::operator::Sum;
use tampi_shim::{ANY_SOURCE, ANY_TAG, Communicator, Error, Rank, Tag};

use crate::harness::{ALL, Case, run};

pub(crate) const CASES: &[Case] = &[
    Case::new("halves_have_messages_of_their_own", ALL, || {
        run(halves_have_messages_of_their_own);
    }),
    Case::new("duplicates_do_not_mix", ALL, || {
        run(duplicates_do_not_mix);
    }),
    Case::new("two_are_made_at_once_in_any_order", ALL, || {
        run(two_are_made_at_once_in_any_order);
    }),
    Case::new("communicators_come_and_go", &[2], || {
        run(communicators_come_and_go);
    }),
];

async fn halves_have_messages_of_their_own(world: Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank().0, world.size());
    let half = world.split(Some(rank % 2), -(rank as i32)).await?.expect("a color");
    let mut members: Vec<u32> = (0..size).filter(|other| other % 2 == rank % 2).collect();
    members.reverse();
    let (_, gathered) = half.allgather(vec![rank], vec![0; members.len()]).await?;
    assert_eq!(gathered, members);
    let next = Rank((half.rank().0 + 1) % half.size());
    let send = half.isend(vec![rank], next, Tag(1));
    let (from, status) = half.recv(vec![0u32], ANY_SOURCE, ANY_TAG).await?;
    assert_eq!(from, [members[status.source.0 as usize]]);
    send.await?;
    assert_eq!(world.allreduce(vec![1u32], Sum).await?, [size]);
    half.free().await
}

async fn duplicates_do_not_mix(world: Communicator) -> Result<(), Error> {
    let copies = [world.clone(), world.duplicate().await?, world.duplicate().await?];
    let next = Rank((world.rank().0 + 1) % world.size());
    let sends: Vec<_> = (0..copies.len())
        .map(|number| copies[number].isend(vec![number as u32], next, Tag(0)))
        .collect();
    for (number, copy) in copies.iter().enumerate().rev() {
        let (message, _) = copy.recv(vec![9u32], ANY_SOURCE, ANY_TAG).await?;
        assert_eq!(message, [number as u32]);
    }
    for send in sends {
        send.await?;
    }
    Ok(())
}

/// In another order on odd ranks.
async fn two_are_made_at_once_in_any_order(world: Communicator) -> Result<(), Error> {
    let (first, second) = (world.duplicate().await?, world.duplicate().await?);
    let make = |from: &Communicator| {
        let from = from.clone();
        world.group().task("split").run_async(async move || from.split(Some(0), 0).await)
    };
    let (first, second) = if world.rank().0 % 2 == 1 {
        let second = make(&second)?;
        (make(&first)?, second)
    } else {
        (make(&first)?, make(&second)?)
    };
    for made in [first.await??, second.await??] {
        let made = made.expect("a color");
        assert_eq!(made.allreduce(vec![1u32], Sum).await?, [world.size()]);
    }
    Ok(())
}

async fn communicators_come_and_go(world: Communicator) -> Result<(), Error> {
    // More than are kept for what others may still send there.
    for round in 0..100 {
        let copy = world.duplicate().await?;
        assert_eq!(copy.allreduce(vec![round], Sum).await?, [round * world.size()]);
        drop(copy);
    }
    Ok(())
}
