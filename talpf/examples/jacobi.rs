//! Heat diffusion by Jacobi's method, on any number of ranks, with a graph that is replayed.
//!
//! Each rank has a band of rows in two matrices, one for even and one for odd steps. A step is
//! declared once: tasks that compute a row each, puts of the outermost rows to the ranks above and
//! below, and a sync with windows for theirs. Run it with `cargo run -p talpf --example jacobi [RANKS]`.

use talpf::{Config, Context, Error, OneSided, SyncMode, exec};
use talpf_runtime::{Matrix, Tiling};

/// Rows without the border, columns with it, and steps.
const ROWS: usize = 50;
const COLS: usize = 40;
const STEPS: usize = 101;

pub(crate) fn main() -> Result<(), Error> {
    let ranks = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(3);
    let bands = exec(Config { ranks, ..Config::default() }, band)?;
    let (mut old, mut new) = (initial(), initial());
    for _ in 0..STEPS {
        for (rows, row) in old.windows(3).zip(&mut new[1..]) {
            relax([&rows[0], &rows[1], &rows[2]], &mut row[1..COLS - 1]);
        }
        std::mem::swap(&mut old, &mut new);
    }
    assert_eq!(bands.concat(), old[1..=ROWS]);
    println!("the rows of all ranks ({ranks}) equal those of the serial loop");
    Ok(())
}

/// The rows of all ranks, between borders of which the upper one is hot.
fn initial() -> Vec<Vec<f64>> {
    (0..ROWS + 2).map(|row| vec![if row == 0 { 100.0 } else { 0.0 }; COLS]).collect()
}

fn relax([above, row, below]: [&[f64]; 3], new: &mut [f64]) {
    for (col, new) in (1..).zip(new) {
        *new = 0.25 * (above[col] + below[col] + row[col - 1] + row[col + 1]);
    }
}

/// Computes the rows of one rank.
async fn band(ctx: Context) -> Result<Vec<Vec<f64>>, Error> {
    let start = |rank: u32| (rank as usize * ROWS) / ctx.size() as usize;
    let (rank, rows_of) = (ctx.rank().0, |rank| start(rank + 1) - start(rank));
    let rows = rows_of(rank);
    let values = initial()[start(rank)..start(rank + 1) + 2].concat();
    let field = || Matrix::new(ctx.group(), values.clone(), COLS, Tiling::new(1, COLS));
    let fields = [field()?, field()?];
    let slots = [ctx.register_global(&fields[0]).await?, ctx.register_global(&fields[1]).await?];
    // Of each neighbour: the row that it gets, the row that comes from it, and where it wants its own.
    let above = (rank > 0).then(|| (1, 0, rank - 1, (rows_of(rank - 1) + 1) * COLS + 1));
    let below = (rank + 1 < ctx.size()).then(|| (rows, rows + 1, rank + 1, 1));
    let neighbours: Vec<_> = above.into_iter().chain(below).collect();
    ctx.iterate_unrolled(STEPS, 2, |step, parity| {
        let [old, new] = [&fields[parity], &fields[1 - parity]];
        let inner = |row| new.row(row, 1..COLS - 1);
        for row in 1..=rows {
            let task = step.task("relax").input(&old.region(row - 1..=row + 1, ..));
            task.output(&inner(row)).spawn(|old, mut new| {
                relax([old.row(0), old.row(1), old.row(2)], &mut new);
            })?;
        }
        let mut sync = step.sync(SyncMode::CACHED);
        for (edge, halo, peer, index) in &neighbours {
            step.put(&inner(*edge), slots[1 - parity].at(*peer, *index))?;
            sync = sync.window(&inner(*halo));
        }
        sync.spawn()
    })?;
    let read = ctx.group().task("read").input(&fields[STEPS % 2].all());
    Ok(read.run(move |field| (1..=rows).map(|row| field.row(row).to_vec()).collect())?.await?)
}
