use talpf_runtime::{Array, Matrix, Tiling};
use tampi_shim::operator::Sum;
use tampi_shim::{Communicator, Error, Rank, iwait};

use crate::common::on_1_to_9_ranks;

/// Tasks that start collectives on their regions; their successors see the results.
async fn through_tasks(world: Communicator) -> Result<(), Error> {
    let (size, rank) = (world.size() as usize, world.rank().0);
    let group = world.group().clone();
    let value = Array::new(&group, vec![0u64; 4], 4)?;
    let all = Array::new(&group, vec![0u64; 4 * size], 4 * size)?;
    for step in 0..5u64 {
        group.task("compute").output(&value.all()).spawn(move |mut value| {
            value.fill(u64::from(rank) + step);
        })?;
        let here = world.clone();
        group.task("gather").input(&value.all()).output(&all.all()).spawn(move |value, all| {
            iwait(here.iallgather(value, all)).expect("in a task");
        })?;
        let here = world.clone();
        group.task("sum").inout(&value.all()).spawn(move |value| {
            iwait(here.iallreduce(value, Sum)).expect("in a task");
        })?;
        group.task("check").input(&value.all()).input(&all.all()).spawn(move |value, all| {
            let expected: u64 = (0..size as u64).map(|rank| rank + step).sum();
            assert!(value.iter().all(|value| *value == expected));
            for (rank, piece) in all.chunks(4).enumerate() {
                assert!(piece.iter().all(|value| *value == rank as u64 + step));
            }
        })?;
        // Collectives of a communicator are started in the same order by all ranks.
        group.wait().await?;
    }
    Ok(())
}

/// A column of a matrix is no stretch of memory.
async fn columns(world: Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank().0 as usize, world.size() as usize);
    let group = world.group().clone();
    let values = (0..6 * 4).map(|index| (100 * rank + index) as f64).collect();
    let matrix = Matrix::new(&group, values, 4, Tiling::new(6, 4))?;
    let column = matrix.region(1..5, 2..3);
    let here = world.clone();
    let task = group.task("sum of columns").inout(&column);
    task.spawn(move |column| iwait(here.iallreduce(column, Sum)).expect("in a task"))?;
    let check = group.task("check").input(&matrix.all());
    let done = check.run(move |matrix| {
        for (row, col) in (0..6).flat_map(|row| (0..4).map(move |col| (row, col))) {
            let own = (100 * rank + 4 * row + col) as f64;
            let sum = (0..size).map(|rank| (100 * rank + 4 * row + col) as f64).sum();
            let expected = if (1..5).contains(&row) && col == 2 { sum } else { own };
            assert_eq!(matrix.row(row)[col], expected, "row {row}, column {col}");
        }
    })?;
    done.await?;
    Ok(())
}

#[test]
fn a_task_is_complete_when_its_collective_is() {
    on_1_to_9_ranks(through_tasks);
}

#[test]
fn rectangles_are_folded_in_place() {
    on_1_to_9_ranks(columns);
}

#[test]
fn a_task_waits_in_a_collective_without_keeping_its_worker() {
    // More tasks wait than there are workers.
    on_1_to_9_ranks(async |world| {
        let mut tasks = Vec::new();
        for _ in 0..16 {
            let own = world.duplicate().await?;
            let task = world.group().task("broadcast").run_async(async move || {
                let value = own.broadcast(vec![own.rank().0], Rank(0)).await?;
                own.barrier().await?;
                Ok::<_, Error>(value[0])
            });
            tasks.push(task?);
        }
        for task in tasks {
            assert_eq!(task.await??, 0);
        }
        Ok(())
    });
}
