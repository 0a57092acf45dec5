//! Groups of ranks, and communicators made of them: sums over the rows and columns of a square.
//!
//! A group is a list of ranks that is made without messages. The ranks then create communicators of
//! them together, and the collectives of a row and of a column do not disturb each other.
//! Run it with `cargo run -p tampi-shim --example rank_groups`.

use tampi_shim::operator::Sum;
use tampi_shim::{Communicator, Config, Error, Rank, exec};

/// Ranks in a row of the square, and in a column.
const SIDE: u32 = 3;

pub(crate) fn main() -> Result<(), Error> {
    let sums = exec(Config { ranks: SIDE * SIDE, ..Config::default() }, sum_up)?;
    for (rank, sums) in (0..).zip(&sums) {
        let in_row = |other: &u32| other / SIDE == rank / SIDE;
        let in_column = |other: &u32| other % SIDE == rank % SIDE;
        let row: u32 = (0..SIDE * SIDE).filter(in_row).sum();
        let column: u32 = (0..SIDE * SIDE).filter(in_column).sum();
        assert_eq!(*sums, (row, column), "rank {rank}");
    }
    println!("the sums of each rank's row and column: {sums:?}");
    Ok(())
}

/// Returns the sums of the ranks in the row and in the column of this one.
async fn sum_up(world: Communicator) -> Result<(u32, u32), Error> {
    let all = world.ranks();
    let (mut row, mut column) = (None, None);
    for line in 0..SIDE {
        // All ranks create every communicator, and those that are no members get none.
        let members = Rank(line * SIDE)..=Rank((line + 1) * SIDE - 1);
        row = world.create(&all.include_ranges(&[(members, 1)])?).await?.or(row);
        let members = Rank(line)..=Rank(SIDE * SIDE - 1);
        column = world.create(&all.include_ranges(&[(members, SIDE as usize)])?).await?.or(column);
    }
    let (row, column) = (row.expect("every rank has a row"), column.expect("and a column"));
    // A rank of the row has another name in the world.
    let name = row.ranks().translate(&[row.rank()], &all)?;
    assert_eq!(name, [Some(world.rank())]);
    let mine = vec![world.rank().0];
    let (row, column) = (row.iallreduce(mine.clone(), Sum), column.iallreduce(mine, Sum));
    Ok((row.await?.0[0], column.await?.0[0]))
}
