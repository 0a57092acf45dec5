use talpf_runtime::{Matrix, Tiling};
use tampi_shim::{Communicator, Error, Rank, Tag};

use crate::common::{config, nothing_is_left, run_well, with_protocols};

const ROWS: usize = 40;
const COLS: usize = 300;

/// Columns and blocks of a matrix go to the same and to other places of the neighbour's.
async fn blocks(world: Communicator) -> Result<(), Error> {
    let other = Rank(world.size() - 1 - world.rank().0);
    let tiling = Tiling::new(ROWS, COLS);
    let number = |rank: u32, at: usize| f64::from(rank) * 1e6 + at as f64;
    let from: Vec<f64> = (0..ROWS * COLS).map(|at| number(world.rank().0, at)).collect();
    let from = Matrix::new(world.group(), from, COLS, tiling)?;
    // One column, narrow and wide blocks, whole rows.
    for (tag, (rows, cols)) in
        [(ROWS, 1), (3, 5), (20, 100), (ROWS, 299), (7, COLS)].into_iter().enumerate()
    {
        let tag = Tag(tag as u32);
        let to = Matrix::new(world.group(), vec![-1.0f64; ROWS * COLS], COLS, tiling)?;
        let offset = COLS - cols;
        let send = world.group().task("send").input(&from.region(0..rows, 0..cols));
        send.spawn({
            let world = world.clone();
            move |block| drop(world.isend(block, other, tag))
        })?;
        let receive = world.group().task("receive").inout(&to.region(0..rows, offset..COLS));
        receive.spawn({
            let world = world.clone();
            move |block| drop(world.irecv(block, other, tag))
        })?;
        let check = world.group().task("check").input(&to.all()).run(move |to| {
            for row in 0..ROWS {
                for col in 0..COLS {
                    let inside = row < rows && col >= offset;
                    let sent = || number(other.0, row * COLS + col - offset);
                    let expected = if inside { sent() } else { -1.0 };
                    assert_eq!(to.row(row)[col], expected, "row {row}, column {col}");
                }
            }
        })?;
        check.await?;
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn rectangles_arrive_where_they_are_received() {
    for ranks in [1, 2] {
        for (eager, lazy) in [(8192, 0), (0, 1 << 20), (0, 0)] {
            run_well(with_protocols(config(ranks, 2), eager, lazy), blocks);
        }
    }
}

/// A rectangle may be received as a vector, and a vector as a rectangle.
async fn reshaped(world: Communicator) -> Result<(), Error> {
    let other = Rank(world.size() - 1 - world.rank().0);
    let tiling = Tiling::new(ROWS, COLS);
    let matrix = Matrix::new(world.group(), vec![0u32; ROWS * COLS], COLS, tiling)?;
    let values: Vec<u32> = (0..20 * 200).collect();
    let receive = world.group().task("receive").output(&matrix.region(5..25, 50..250));
    receive.spawn({
        let world = world.clone();
        move |block| drop(world.irecv(block, other, Tag(0)))
    })?;
    world.send(values.clone(), other, Tag(0)).await?;
    let send = world.group().task("send").input(&matrix.region(5..25, 50..250));
    send.spawn({
        let world = world.clone();
        move |block| drop(world.isend(block, other, Tag(1)))
    })?;
    let (back, _) = world.recv(vec![0u32; 20 * 200], other, Tag(1)).await?;
    assert!(back == values);
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn shapes_need_not_agree() {
    for ranks in [1, 2] {
        for eager in [8192, 0] {
            run_well(with_protocols(config(ranks, 2), eager, 0), reshaped);
        }
    }
}
