//! A tiled Cholesky factorization: nested tasks, weak accesses and priorities.
//!
//! Each step is a task that lends its children the part of the matrix that is left. The access of
//! a step is weak, so the steps begin at once and their children wait for single tiles only.
//! Run it with `cargo run -p talpf-runtime --example cholesky`.

use ndarray::{Array2, ArrayViewMut2, s};
use talpf_runtime::{Children, Config, Error, In, InOut, Ix2, Lend, Matrix, Runtime, Tiling};

/// Rows of the matrix, and rows of a tile.
const N: usize = 96;
const B: usize = 16;

pub(crate) fn main() -> Result<(), Error> {
    let element = |(row, col): (usize, usize)| N as f64 / (1 + N * row.abs_diff(col)) as f64;
    let mut expected = Array2::from_shape_fn((N, N), element);
    let runtime = Runtime::new(Config::default())?;
    let matrix = Matrix::new(&runtime, expected.iter().copied().collect(), N, Tiling::new(B, B))?;
    for first in (0..N).step_by(B) {
        let step = runtime.task("step").weak_inout(&matrix.region(first.., first..));
        step.spawn(|rest| declare_step(&rest).expect("the tiles are lent"))?;
    }
    let read = runtime.task("read").input(&matrix.all()).run(|matrix| matrix.view().to_owned())?;
    let factor = runtime.block_on(read)??;

    // The tasks do to every element what the serial loop does, in the same order.
    factorize(expected.view_mut());
    for row in 0..N {
        assert_eq!(factor.slice(s![row, ..=row]), expected.slice(s![row, ..=row]), "row {row}");
    }
    println!("the factor of {N} x {N} elements in tiles of {B} x {B} equals the serial one");
    Ok(())
}

/// Declares the children of one step, which eliminates the first column of tiles of `rest`.
fn declare_step(rest: &Lend<f64, Ix2>) -> Result<(), Error> {
    let children = Children::of_current_task()?;
    let tile = |row: usize, col: usize| rest.region(row * B..(row + 1) * B, col * B..(col + 1) * B);
    let factor = children.task("factorize").priority(3).inout(&tile(0, 0));
    factor.spawn(|mut tile| factorize(tile.view_mut()))?;
    for row in 1..rest.rows() / B {
        let solve = children.task("solve").priority(2).input(&tile(0, 0)).inout(&tile(row, 0));
        solve.spawn(solve_tile)?;
        for col in 1..=row {
            // The next step begins with the first column, so that goes first.
            let update = children.task("update").priority(i32::from(col == 1));
            let update = update.input(&tile(row, 0)).input(&tile(col, 0));
            update.inout(&tile(row, col)).spawn(update_tile)?;
        }
    }
    Ok(())
}

/// Replaces the lower half of `a` by its Cholesky factor.
fn factorize(mut a: ArrayViewMut2<'_, f64>) {
    for col in 0..a.nrows() {
        for row in col..a.nrows() {
            (0..col).for_each(|k| a[[row, col]] -= a[[row, k]] * a[[col, k]]);
            let pivot = a[[col, col]];
            a[[row, col]] = if row == col { pivot.sqrt() } else { a[[row, col]] / pivot };
        }
    }
}

fn solve_tile(factor: In<f64, Ix2>, mut tile: InOut<f64, Ix2>) {
    let (l, mut x) = (factor.view(), tile.view_mut());
    for (row, col) in (0..B).flat_map(|row| (0..B).map(move |col| (row, col))) {
        (0..col).for_each(|k| x[[row, col]] -= x[[row, k]] * l[[col, k]]);
        x[[row, col]] /= l[[col, col]];
    }
}

fn update_tile(left: In<f64, Ix2>, top: In<f64, Ix2>, mut tile: InOut<f64, Ix2>) {
    let (left, top, mut c) = (left.view(), top.view(), tile.view_mut());
    for (row, col) in (0..B).flat_map(|row| (0..B).map(move |col| (row, col))) {
        (0..B).for_each(|k| c[[row, col]] -= left[[row, k]] * top[[col, k]]);
    }
}
