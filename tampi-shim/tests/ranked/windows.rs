//! Windows: one-sided communication over MPI.

use talpf_runtime::{Array, Matrix, Tiling};
use tampi_shim::mpi::{Update, Window};
use tampi_shim::{Communicator, Error, Rank, iwait};

use crate::harness::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    what_is_put_is_got,
    tasks_put_and_get_their_regions,
    columns_of_a_matrix_are_put_and_got_in_a_half_of_the_ranks,
    updates_of_one_element_are_atomic,
    a_transfer_beyond_the_end_is_an_error,
    a_length_of_more_bytes_than_can_be_is_an_error_at_all_ranks,
];

async fn a_length_of_more_bytes_than_can_be_is_an_error_at_all_ranks(
    world: Communicator,
) -> Result<(), Error> {
    // Times eight it wraps to one element.
    let long = (1 << 61) + 1;
    let length = if world.rank() == Rank(0) { long } else { 1 };
    let refused = Window::<u64>::allocate(&world, length).await;
    let Err(Error::Limit { value, limit, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!((value, limit), (long as u64, isize::MAX as u64 / 8));
    Window::<u64>::allocate(&world, 1).await?.free().await
}

async fn what_is_put_is_got(world: Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank().0, world.size());
    let (left, right) = (Rank((rank + size - 1) % size), Rank((rank + 1) % size));
    for length in [1, 100, 40_000] {
        let window = Window::<u64>::allocate(&world, length + 1).await?;
        let values: Vec<u64> = (0..length as u64).map(|n| n * 5 + u64::from(rank)).collect();
        window.put(values, right, 1).await?;
        window.flush(right).await?;
        world.barrier().await?;
        let (own, _) = window.get(vec![9; length + 1], world.rank(), 0).await?;
        assert_eq!(own[0], 0, "fresh memory is zero");
        let expected = (0..length as u64).map(|n| n * 5 + u64::from(left.0));
        assert!(own[1..].iter().copied().eq(expected), "{length} elements");
        let (far, _) = window.get(vec![9; 1], right, 1).await?;
        assert_eq!(far, [u64::from(rank)]);
        window.free().await?;
    }
    Ok(())
}

async fn tasks_put_and_get_their_regions(world: Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank().0, world.size());
    let right = Rank((rank + 1) % size);
    let window = std::sync::Arc::new(Window::<u32>::allocate(&world, 8).await?);
    let values = Array::new(world.group(), vec![0u32; 8], 8)?;
    let fill = world.group().task("fill").output(&values.all());
    fill.spawn(move |mut values| values.fill(rank + 1))?;
    let to = std::sync::Arc::clone(&window);
    let put = world.group().task("put").input(&values.all());
    put.run(move |values| iwait(to.put(values, right, 0)).expect("in a task"))?.await?;
    world.group().wait().await?;
    window.flush(right).await?;
    world.barrier().await?;
    let (from, own) = (std::sync::Arc::clone(&window), world.rank());
    let get = world.group().task("get").output(&values.all());
    get.spawn(move |values| iwait(from.get(values, own, 0)).expect("in a task"))?;
    let read = world.group().task("read").input(&values.all()).run(|values| values.to_vec())?;
    assert_eq!(read.await?, [(rank + size - 1) % size + 1; 8]);
    world.barrier().await
}

async fn columns_of_a_matrix_are_put_and_got_in_a_half_of_the_ranks(
    world: Communicator,
) -> Result<(), Error> {
    let half = world.split(Some(world.rank().0 % 2), 0).await?.expect("a color");
    let right = Rank((half.rank().0 + 1) % half.size());
    let window = std::sync::Arc::new(Window::<u32>::allocate(&half, 6).await?);
    let tiling = Tiling::new(6, 4);
    let matrix = Matrix::new(world.group(), (0..24).collect(), 4, tiling)?;
    let to = std::sync::Arc::clone(&window);
    let put = world.group().task("put").input(&matrix.region(0..6, 1..2));
    put.run(move |column| iwait(to.put(column, right, 0)).expect("in a task"))?.await?;
    world.group().wait().await?;
    let to = std::sync::Arc::clone(&window);
    let add = world.group().task("add").input(&matrix.region(0..6, 2..3));
    add.run(move |column| {
        iwait(to.accumulate(column, Update::Sum, right, 0)).expect("in a task");
    })?
    .await?;
    world.group().wait().await?;
    window.flush(right).await?;
    half.barrier().await?;
    let (from, own) = (std::sync::Arc::clone(&window), half.rank());
    let get = world.group().task("get").output(&matrix.region(0..6, 3..4));
    get.spawn(move |column| iwait(from.get(column, own, 0)).expect("in a task"))?;
    let read = world.group().task("read").input(&matrix.all());
    let read = read.run(|all| (0..6).map(|row| all.row(row)[3]).collect::<Vec<_>>())?;
    assert_eq!(read.await?, [3, 11, 19, 27, 35, 43]);
    half.barrier().await
}

async fn updates_of_one_element_are_atomic(world: Communicator) -> Result<(), Error> {
    const ROUNDS: u64 = 10;
    let (first, size) = (Rank(0), u64::from(world.size()));
    let window = Window::<u64>::allocate(&world, 4).await?;
    let mut seen = Vec::new();
    for _ in 0..ROUNDS {
        seen.push(window.fetch_and_op(1, Update::Sum, first, 0).await?);
        window.accumulate(vec![2, 3], Update::Sum, first, 1).await?;
    }
    assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
    // One rank wins the swap.
    let mine = u64::from(world.rank().0) + 1;
    let found = window.compare_and_swap(0, mine, first, 3).await?;
    window.flush(first).await?;
    world.barrier().await?;
    let winner = window.fetch_and_op(0, Update::Keep, first, 3).await?;
    assert_eq!(found, if winner == mine { 0 } else { winner });
    let (total, _) = window.get(vec![0; 3], first, 0).await?;
    assert_eq!(total, [ROUNDS * size, 2 * ROUNDS * size, 3 * ROUNDS * size]);
    world.barrier().await?;
    if world.rank() == first {
        assert_eq!(window.fetch_and_op(7, Update::Replace, first, 0).await?, ROUNDS * size);
        assert_eq!(window.fetch_and_op(9, Update::Max, first, 0).await?, 7);
        assert_eq!(window.fetch_and_op(0, Update::Keep, first, 0).await?, 9);
    }
    window.free().await
}

async fn a_transfer_beyond_the_end_is_an_error(world: Communicator) -> Result<(), Error> {
    let last = Rank(world.size() - 1);
    let window = Window::<f64>::allocate(&world, world.rank().0 as usize).await?;
    let length = window.length(last)? as usize;
    assert_eq!(length, last.0 as usize);
    window.put(vec![1.5; length], last, 0).await?;
    for first in [1, usize::MAX] {
        match window.put(vec![1.5; length], last, first).await {
            Err(Error::Limit { limit, .. }) => assert_eq!(limit, length as u64),
            other => panic!("{other:?}"),
        }
    }
    assert!(window.get(vec![0.0], Rank(world.size()), 0).await.is_err());
    window.free().await
}
