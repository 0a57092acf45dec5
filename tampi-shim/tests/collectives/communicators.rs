use tampi_shim::operator::Sum;
use tampi_shim::{ANY_SOURCE, ANY_TAG, Communicator, Comparison, Error, Rank, Tag};

use crate::common::{on_1_to_9_ranks, run};

/// The ranks of the world that are here, in the order they have here.
async fn members(of: &Communicator, world: Rank) -> Result<Vec<u32>, Error> {
    let (_, members) = of.allgather(vec![world.0], vec![0; of.size() as usize]).await?;
    Ok(members)
}

/// Colors and keys, and in each half again.
async fn split_twice(world: Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank(), world.size());
    let half = world.split(Some(rank.0 % 2), -(rank.0 as i32)).await?.expect("a color");
    let mut expected: Vec<u32> = (0..size).filter(|other| other % 2 == rank.0 % 2).collect();
    expected.reverse();
    assert_eq!(members(&half, rank).await?, expected);
    let rest = half.split((half.rank() != Rank(0)).then_some(7), 0).await?;
    match rest {
        Some(rest) => assert_eq!(members(&rest, rank).await?, expected[1..]),
        None => assert_eq!(half.rank(), Rank(0)),
    }
    // All levels are still good.
    let sums = (half.allreduce(vec![1u32], Sum).await?, world.allreduce(vec![1u32], Sum).await?);
    assert_eq!(sums, (vec![half.size()], vec![size]));
    half.free().await
}

/// Messages with the same tags in three communicators of the same ranks.
async fn duplicates(world: Communicator) -> Result<(), Error> {
    let copies = [world.clone(), world.duplicate().await?, world.duplicate().await?];
    let next = Rank((world.rank().0 + 1) % world.size());
    let mut sends = Vec::new();
    for (number, copy) in copies.iter().enumerate() {
        sends.push(copy.isend(vec![number as u32], next, Tag(0)));
    }
    for (number, copy) in copies.iter().enumerate().rev() {
        let (message, _) = copy.recv(vec![0u32], ANY_SOURCE, ANY_TAG).await?;
        assert_eq!(message, [number as u32]);
        assert_eq!(copy.ranks().compare(&world.ranks()), Comparison::Identical);
    }
    for send in sends {
        send.await?;
    }
    for copy in copies {
        copy.free().await?;
    }
    Ok(())
}

/// Two splits of different communicators under way at once, in another order on odd ranks.
async fn two_at_once(world: Communicator) -> Result<(), Error> {
    let (first, second) = (world.duplicate().await?, world.duplicate().await?);
    let key = -(world.rank().0 as i32);
    let make = |from: &Communicator| {
        let from = from.clone();
        world.group().task("split").run_async(async move || from.split(Some(0), key).await)
    };
    let odd = world.rank().0 % 2 == 1;
    let (one, other) = if odd { (&second, &first) } else { (&first, &second) };
    let (one, other) = (make(one)?, make(other)?);
    let (one, other) = (one.await??.expect("a color"), other.await??.expect("a color"));
    let (first, second) = if odd { (other, one) } else { (one, other) };
    let next = Rank((first.rank().0 + 1) % first.size());
    let sends = [first.isend(vec![1u8], next, Tag(0)), second.isend(vec![2u8], next, Tag(0))];
    assert_eq!(second.recv(vec![0u8], ANY_SOURCE, Tag(0)).await?.0, [2]);
    assert_eq!(first.recv(vec![0u8], ANY_SOURCE, Tag(0)).await?.0, [1]);
    for send in sends {
        send.await?;
    }
    Ok(())
}

#[test]
fn splits_order_by_key_and_nest() {
    on_1_to_9_ranks(split_twice);
}

#[test]
fn duplicates_keep_their_messages_apart() {
    on_1_to_9_ranks(duplicates);
}

#[test]
fn splits_at_the_same_time_do_not_mix() {
    on_1_to_9_ranks(two_at_once);
}

#[test]
fn a_communicator_of_a_group_has_its_order() {
    run(6, async |world| {
        let group = world.ranks().include(&[Rank(4), Rank(1), Rank(2)])?;
        let made = world.create(&group).await?;
        assert_eq!(made.is_some(), [1, 2, 4].contains(&world.rank().0));
        if let Some(made) = made {
            assert_eq!(members(&made, world.rank()).await?, [4, 1, 2]);
            assert_eq!(made.ranks(), group);
        }
        Ok(())
    })
    .expect("the program");
}

#[test]
fn a_rank_without_a_color_is_in_none() {
    run(3, async |world| {
        assert!(world.split(None, 0).await?.is_none());
        Ok(())
    })
    .expect("the program");
}

#[test]
fn many_communicators_can_be_made_and_freed() {
    run(3, async |world| {
        for _ in 0..200 {
            let copy = world.duplicate().await?;
            assert_eq!(copy.allreduce(vec![1u8], Sum).await?, [3]);
            copy.free().await?;
        }
        Ok(())
    })
    .expect("the program");
}
