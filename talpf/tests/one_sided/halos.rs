//! Halos of a matrix on any grid of ranks are copies of what the neighbours have.

use crate::common;
use talpf::{Context, Decomposition, Error, Halo, OneSided, SyncMode};
use talpf_runtime::{Ix2, Matrix, Tiling};

const STEPS: usize = 4;

/// Changes the cells of a part in a step.
fn next(cell: u64) -> u64 {
    cell.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)
}

/// The way of a test to exchange.
#[derive(Clone, Copy, Debug)]
struct Way {
    gets: bool,
    replayed: bool,
    mode: SyncMode,
    /// Number of the lane.
    lane: u8,
}

fn exchange<'r>(halo: &'r Halo<u64>, scope: &impl OneSided<'r>, way: Way) -> Result<(), Error> {
    if way.gets { halo.exchange_by_gets(scope, way.mode) } else { halo.exchange(scope, way.mode) }
}

/// Changes the part of this rank `STEPS` times and exchanges its halos after each change. Returns
/// the cells with their halos.
async fn cells(ctx: Context, parts: Decomposition, way: Way) -> Result<Vec<Vec<u64>>, Error> {
    let [rows, cols] = parts.local_shape(ctx.rank())?;
    let [own_rows, own_cols] = parts.part(ctx.rank())?;
    let width = (rows - own_rows.len()) / 2;
    let value = |row: usize, col: usize| (row as u64) << 32 | col as u64;
    let mut values = vec![0; rows * cols];
    for (row, line) in own_rows.zip(values.chunks_mut(cols).skip(width)) {
        for (col, cell) in own_cols.clone().zip(&mut line[width..]) {
            *cell = value(row, col);
        }
    }
    let matrix = Matrix::new(ctx.group(), values, cols, Tiling::new(3, 4).first(width, width))?;
    let halo = Halo::new(&ctx, &parts, &matrix).await?;
    let lane = ctx.lane(way.lane)?;
    let part = matrix.region(width..rows - width, width..cols - width);
    let change = |mut part: talpf_runtime::InOut<u64, Ix2>| {
        part.view_mut().iter_mut().for_each(|cell| *cell = next(*cell));
    };
    if way.replayed {
        ctx.iterate(STEPS, |step| {
            step.task("change").inout(&part).spawn(change)?;
            exchange(&halo, &step.on(&lane)?, way)
        })?;
        ctx.group().wait().await?;
    } else {
        for _ in 0..STEPS {
            ctx.group().task("change").inout(&part).spawn(change)?;
            exchange(&halo, &lane, way)?;
        }
    }
    let read = ctx.group().task("read").input(&matrix.all());
    let read = read.run(|all| (0..all.rows()).map(|row| all.row(row).to_vec()).collect())?;
    Ok(read.await?)
}

fn check(parts: Decomposition, shape: [usize; 2], width: usize, corners: bool, way: Way) {
    let config = common::config(parts.ranks(), 2);
    let ends = common::run(config, move |ctx| cells(ctx, parts, way)).unwrap();
    let shape_of_grid = parts.grid_shape();
    for (rank, seen) in (0..).map(talpf::Rank).zip(ends) {
        let [own_rows, own_cols] = parts.part(rank).unwrap();
        for (row, line) in seen.iter().enumerate() {
            for (col, cell) in line.iter().enumerate() {
                // In the whole matrix, which has a ring of `width` too.
                let (row, col) = (row + own_rows.start, col + own_cols.start);
                let inside = |at: usize, len: usize| (width..len + width).contains(&at);
                let exists = inside(row, shape[0]) && inside(col, shape[1]);
                let beside = [(row, &own_rows), (col, &own_cols)]
                    .map(|(at, own)| !(own.start + width..own.end + width).contains(&at));
                let has_it = exists && (corners || beside != [true, true]);
                let start = (row.wrapping_sub(width) as u64) << 32 | col.wrapping_sub(width) as u64;
                let expected =
                    if has_it { (0..STEPS).fold(start, |cell, _| next(cell)) } else { 0 };
                assert_eq!(*cell, expected, "{shape_of_grid:?} {rank}: {row}, {col}, {way:?}");
            }
        }
    }
}

#[test]
fn every_grid_of_up_to_nine_ranks() {
    let shape = [11, 13];
    for rows in 1..=9 {
        for cols in 1..=9 / rows {
            let parts = Decomposition::grid([rows, cols], shape, 1).unwrap();
            let way = Way { gets: false, replayed: false, mode: SyncMode::CACHED, lane: 0 };
            check(parts, shape, 1, false, way);
            check(
                parts.in_pieces(3, 4).with_corners(),
                shape,
                1,
                true,
                Way { replayed: true, ..way },
            );
            check(parts, shape, 1, false, Way { gets: true, ..way });
        }
    }
}

#[test]
fn puts_and_gets_in_every_mode_and_on_any_lane() {
    let shape = [10, 9];
    let parts = Decomposition::grid([2, 2], shape, 2).unwrap().in_pieces(2, 3).with_corners();
    for mode in common::modes(0) {
        for (gets, replayed) in [(false, false), (false, true), (true, false), (true, true)] {
            let lane = if replayed { 3 } else { 0 };
            check(parts, shape, 2, true, Way { gets, replayed, mode, lane });
        }
    }
}

#[test]
fn another_number_of_ranks_or_another_shape_is_an_error_at_all() {
    let refused = |parts: Decomposition, more: usize| {
        let ends = common::run(common::unwatched(2, 2), move |ctx| async move {
            let [rows, cols] = [5, 4 + more * ctx.rank().0 as usize];
            let tiling = Tiling::new(rows, cols);
            let matrix = Matrix::new(ctx.group(), vec![0u8; rows * cols], cols, tiling)?;
            Halo::new(&ctx, &parts, &matrix).await.map(drop)
        });
        ends.unwrap_err()
    };
    let error = refused(Decomposition::grid([2, 3], [6, 6], 1).unwrap(), 0);
    common::says(&error, &["a grid of 2 x 3 has 6 ranks, the run has 2"]);
    let error = refused(Decomposition::rows(2, [6, 2], 1).unwrap(), 1);
    common::says(&error, &["is 5 x 5, the part of rank 1 with its halos is 5 x 4"]);
}
