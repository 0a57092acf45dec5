//! Random programs of plain BSP leave what the operations of each superstep leave in some order.

use std::sync::Arc;

use proptest::prelude::*;
use talpf::Error;
use talpf_runtime::{In, Matrix, Tiling};

use crate::common;

/// Shape of the matrix of each rank.
const SHAPE: [usize; 2] = [5, 7];
const RANKS: usize = 3;

/// Operation of a rank between a rectangle of its matrix and one of a peer: parts of either may be
/// read and written by any others.
#[derive(Clone, Copy, Debug)]
struct Queued {
    is_put: bool,
    peer: usize,
    /// Rows and columns of both rectangles.
    shape: [usize; 2],
    /// First row and column here, and at the peer.
    near: [usize; 2],
    far: [usize; 2],
}

/// Operations by rank.
type Superstep = Vec<Vec<Queued>>;

/// Element of a matrix, a number several times: a few of them are a long put.
type Cell = [u32; 20];

/// Numbers of the matrix of a rank, row after row.
type Cells = Vec<u32>;

fn queued() -> impl Strategy<Value = Queued> {
    let shape = (0..=SHAPE[0], 0..=SHAPE[1]);
    let operation = shape.prop_flat_map(|(rows, cols)| {
        let first = || (0..=SHAPE[0] - rows, 0..=SHAPE[1] - cols);
        (any::<bool>(), 0..RANKS, Just((rows, cols)), first(), first())
    });
    operation.prop_map(|(is_put, peer, shape, near, far)| Queued {
        is_put,
        peer,
        shape: shape.into(),
        near: near.into(),
        far: far.into(),
    })
}

fn supersteps() -> impl Strategy<Value = Vec<Superstep>> {
    let of_rank = prop::collection::vec(queued(), 0..8);
    let superstep = (prop::collection::vec(of_rank, RANKS), any::<[bool; 2]>());
    let superstep = superstep.prop_map(|(mut superstep, [all_put, all_short])| {
        for queued in superstep.iter_mut().flatten() {
            queued.is_put |= all_put;
            if all_short {
                queued.shape[0] = queued.shape[0].min(1);
                queued.shape[1] = queued.shape[1].min(3);
            }
        }
        superstep
    });
    prop::collection::vec(superstep, 1..4)
}

/// Returns the matrix of a rank at first: numbers that no other rank has.
fn first_cells(rank: usize) -> Cells {
    (0..(SHAPE[0] * SHAPE[1]) as u32).map(|index| rank as u32 * 1000 + index).collect()
}

/// Runs a program, and returns the matrix of each rank after each of its supersteps.
fn run(supersteps: &[Superstep], workers: usize) -> Vec<Vec<Cells>> {
    let shared: Arc<[Superstep]> = supersteps.into();
    let ends = common::run(common::config(RANKS as u32, workers), |ctx| {
        let supersteps = Arc::clone(&shared);
        async move {
            let me = ctx.rank().0 as usize;
            let cells = first_cells(me).into_iter().map(|number| [number; size_of::<Cell>() / 4]);
            let matrix = Matrix::new(ctx.group(), cells.collect(), SHAPE[1], Tiling::new(2, 3))?;
            let slot = ctx.register_global(&matrix).await?;
            let mut bsp = ctx.bsp();
            let mut after = Vec::new();
            for superstep in supersteps.iter() {
                for Queued { is_put, peer, shape, near, far } in &superstep[me] {
                    let part = |at: &[usize; 2]| (at[0]..at[0] + shape[0], at[1]..at[1] + shape[1]);
                    let ((rows, cols), (far_rows, far_cols)) = (part(near), part(far));
                    let here = matrix.region(rows, cols);
                    let there = slot.region(*peer as u32, far_rows, far_cols);
                    match is_put {
                        true => bsp.put(&here, there)?,
                        false => bsp.get(there, &here)?,
                    }
                }
                bsp.sync().await?;
                let read = ctx.group().task("read").input(&matrix.all());
                let number_of = |cell: &Cell| {
                    assert_eq!(*cell, [cell[0]; size_of::<Cell>() / 4], "a torn element");
                    cell[0]
                };
                let cells = move |all: In<Cell, _>| all.view().iter().map(number_of).collect();
                after.push(read.run(cells)?.await?);
            }
            Ok::<_, Error>(after)
        }
    });
    ends.unwrap()
}

/// Returns the values that operations of a superstep write to each cell of each rank; all of them
/// read what was there `before`.
fn written(superstep: &Superstep, before: &[Cells]) -> Vec<Vec<Vec<u32>>> {
    let mut written = vec![vec![Vec::new(); SHAPE[0] * SHAPE[1]]; RANKS];
    for (rank, operations) in superstep.iter().enumerate() {
        for Queued { is_put, peer, shape, near, far } in operations {
            for (row, col) in (0..shape[0]).flat_map(|row| (0..shape[1]).map(move |col| (row, col)))
            {
                let cell = |at: &[usize; 2]| (at[0] + row) * SHAPE[1] + at[1] + col;
                let (near, far) = ((rank, cell(near)), (*peer, cell(far)));
                let (from, to) = if *is_put { (near, far) } else { (far, near) };
                written[to.0][to.1].push(before[from.0][from.1]);
            }
        }
    }
    written
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn programs_leave_what_their_operations_leave(
        supersteps in supersteps(),
        workers in 1..=2usize,
    ) {
        let ends = run(&supersteps, workers);
        let mut before: Vec<_> = (0..RANKS).map(first_cells).collect();
        for (number, superstep) in supersteps.iter().enumerate() {
            let after: Vec<_> = ends.iter().map(|of_rank| of_rank[number].clone()).collect();
            for (rank, written) in written(superstep, &before).iter().enumerate() {
                for (cell, values) in written.iter().enumerate() {
                    let value = after[rank][cell];
                    match values.is_empty() {
                        true => prop_assert_eq!(value, before[rank][cell]),
                        false => prop_assert!(values.contains(&value), "{value}: {values:?}"),
                    }
                }
            }
            before = after;
        }
    }
}
