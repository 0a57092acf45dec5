//! Heat diffusion by Jacobi's method, on any number of ranks, spawned step by step or replayed.
//!
//! Each rank has a part of the plate in two matrices, one for even and one for odd steps. A step
//! declares tasks that compute a row each, and the exchange of the outermost rows with the ranks
//! above and below. Run it with `cargo run -p talpf --example jacobi [RANKS] [replay]`.

use talpf::{Config, Context, Decomposition, Error, Halo, OneSided, SyncMode, exec};
use talpf_runtime::{Matrix, Tiling};

/// Rows and columns of the plate without its border, and steps.
const PLATE: [usize; 2] = [50, 40];
const STEPS: usize = 101;

pub(crate) fn main() -> Result<(), Error> {
    let ranks = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(3);
    let replay = std::env::args().nth(2).is_some_and(|how| how == "replay");
    let config = Config { ranks, ..Config::default() };
    let parts = exec(config, async move |ctx| solve(&ctx, replay).await)?;
    let serial =
        exec(Config { ranks: 1, ..Config::default() }, async |ctx| solve(&ctx, false).await)?;
    assert_eq!(parts.concat(), serial.concat());
    println!("the plate of {ranks} ranks equals that of one rank, bit by bit");
    Ok(())
}

/// Returns the rows of this rank after all steps.
async fn solve(ctx: &Context, replay: bool) -> Result<Vec<Vec<f64>>, Error> {
    let plate = Decomposition::rows(ctx.size(), PLATE, 1)?;
    let [rows, cols] = plate.local_shape(ctx.rank())?;
    let mut values = vec![0.0; rows * cols];
    if ctx.rank().0 == 0 {
        values[..cols].fill(100.0); // The upper border is hot.
    }
    let field = || Matrix::new(ctx.group(), values.clone(), cols, Tiling::new(1, cols));
    let halos =
        [Halo::new(ctx, &plate, &field()?).await?, Halo::new(ctx, &plate, &field()?).await?];
    if replay {
        ctx.iterate_unrolled(STEPS, 2, |step, number| declare(step, &halos, number))?;
    } else {
        (0..STEPS).try_for_each(|number| declare(ctx, &halos, number))?;
    }
    let result = halos[STEPS % 2].matrix().region(1..rows - 1, ..);
    let read = ctx.group().task("read").input(&result);
    Ok(read.run(|field| field.view().rows().into_iter().map(|row| row.to_vec()).collect())?.await?)
}

/// Declares a step, to be spawned or to be replayed.
fn declare<'r>(
    scope: &impl OneSided<'r>,
    halos: &'r [Halo<f64>; 2],
    number: usize,
) -> Result<(), Error> {
    let [old, new] = [&halos[number % 2], &halos[(number + 1) % 2]];
    let last = old.matrix().cols() - 1;
    for row in 1..old.matrix().rows() - 1 {
        let task = scope.task("relax").input(&old.matrix().region(row - 1..=row + 1, ..));
        task.output(&new.matrix().row(row, 1..last)).spawn(move |old, mut new| {
            let [above, row, below] = [old.row(0), old.row(1), old.row(2)];
            for (col, new) in (1..).zip(new.iter_mut()) {
                *new = 0.25 * (above[col] + below[col] + row[col - 1] + row[col + 1]);
            }
        })?;
    }
    new.exchange(scope, SyncMode::CACHED)
}
