//! Windows on parts of a matrix, and puts of rectangles.

use crate::common;
use talpf::{Context, Error, Rank, SyncMode};
use talpf_runtime::{Matrix, Tiling};

const ROWS: usize = 12;
const COLS: usize = 10;

fn matrix(ctx: &Context, first: u32, step: u32) -> Result<Matrix<u32>, Error> {
    let values = (0..(ROWS * COLS) as u32).map(|index| first + step * index);
    let tiling = Tiling::new(4, 5);
    Ok(Matrix::new(ctx.group(), values.collect(), COLS, tiling)?)
}

async fn rows(ctx: &Context, matrix: &Matrix<u32>) -> Result<Vec<Vec<u32>>, Error> {
    let task = ctx.group().task("read").input(&matrix.all());
    let read = task.run(|all| (0..all.rows()).map(|row| all.row(row).to_vec()).collect())?;
    Ok(read.await?)
}

#[test]
fn rows_of_both_neighbours() {
    for mode in common::modes(2) {
        common::run(common::config(3, 2), move |ctx| async move {
            let (me, ranks) = (ctx.rank().0, ctx.size());
            let grid = matrix(&ctx, 1_000 * me, 0)?;
            let slot = ctx.register_global(&grid).await?;
            for _ in 0..5 {
                let (up, down) = ((me + ranks - 1) % ranks, (me + 1) % ranks);
                ctx.put(&grid.row(1, ..), slot.row(Rank(up), ROWS - 1, ..))?;
                ctx.put(&grid.row(ROWS - 2, ..), slot.row(Rank(down), 0, ..))?;
                let sync = ctx.sync(mode).window(&grid.row(0, ..));
                sync.window(&grid.row(ROWS - 1, ..)).await?;
                let seen = rows(&ctx, &grid).await?;
                assert_eq!(seen[0], vec![1_000 * up; COLS]);
                assert_eq!(seen[ROWS - 1], vec![1_000 * down; COLS]);
                assert_eq!(seen[1..ROWS - 1].concat(), vec![1_000 * me; (ROWS - 2) * COLS]);
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

#[test]
fn parts_of_rows_in_a_rectangle() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let grid = matrix(&ctx, 0, 0)?;
        let slot = ctx.register_global(&grid).await?;
        let values = matrix(&ctx, 1, 1)?;
        let peer = Rank(1 - ctx.rank().0);
        for row in 3..7 {
            ctx.put(&values.row(row, 2..6), slot.row(peer, row, 2..6))?;
        }
        let sync = ctx.sync(SyncMode::CACHED);
        sync.window(&grid.region(3..7, 2..6)).await?;
        rows(&ctx, &grid).await
    });
    for seen in ends.unwrap() {
        for (row, seen) in seen.iter().enumerate() {
            for (col, &seen) in seen.iter().enumerate() {
                let inside = (3..7).contains(&row) && (2..6).contains(&col);
                let expected = if inside { row * COLS + col + 1 } else { 0 };
                assert_eq!(seen as usize, expected, "row {row}, column {col}");
            }
        }
    }
}

/// A put that runs on into the next row needs whole rows.
#[test]
fn a_put_over_the_end_of_a_row_is_outside_a_rectangle() {
    for (cols, right) in [(0..COLS, true), (0..COLS - 1, false), (1..COLS, false)] {
        let result = common::run(common::unwatched(2, 2), |ctx| {
            let cols = cols.clone();
            async move {
                let grid = matrix(&ctx, 0, 0)?;
                let slot = ctx.register_global(&grid).await?;
                let values = common::array(&ctx, vec![1u32; 4])?;
                ctx.put(&values.all(), slot.at(Rank(1 - ctx.rank().0), 4 * COLS - 2))?;
                let sync = ctx.sync(SyncMode::msg(1));
                sync.window(&grid.region(3..5, cols)).await
            }
        });
        assert_eq!(result.is_ok(), right, "columns {cols:?}: {result:?}");
    }
}

#[test]
fn a_rectangle_is_gathered() {
    let expected: Vec<u32> =
        (2..9).flat_map(|row| (3..8).map(move |col| row * COLS as u32 + col)).collect();
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let values = matrix(&ctx, 0, 1)?;
        ctx.register_local(&values)?;
        let inbox = common::array(&ctx, vec![0u32; 7 * 5])?;
        let slot = ctx.register_global(&inbox).await?;
        let rectangle = values.region(2..9, 3..8);
        ctx.put(&rectangle, slot.at(Rank(1 - ctx.rank().0), 0))?;
        ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
        common::read(&ctx, &inbox).await
    });
    assert_eq!(ends.unwrap(), [expected.clone(), expected]);
}

#[test]
fn a_rectangle_is_scattered_by_a_get() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let values = common::array(&ctx, (100..135u32).collect())?;
        let slot = ctx.register_global(&values).await?;
        let grid = matrix(&ctx, 0, 0)?;
        ctx.register_local(&grid)?;
        let rectangle = grid.region(2..9, 3..8);
        ctx.get(slot.at(Rank(1 - ctx.rank().0), 0), &rectangle)?;
        ctx.sync(SyncMode::DEFAULT).expose(&values.all()).await?;
        rows(&ctx, &grid).await
    });
    for seen in ends.unwrap() {
        let got: Vec<u32> = seen[2..9].iter().flat_map(|row| row[3..8].to_vec()).collect();
        assert_eq!(got, (100..135).collect::<Vec<_>>());
        assert_eq!(seen.concat().iter().filter(|&&value| value == 0).count(), ROWS * COLS - 35);
    }
}
