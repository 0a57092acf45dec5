use tampi_shim::{ANY_SOURCE, Communicator, Error, Rank, Tag};

use crate::common::{config, run_well, with_protocols};

/// Receives that nothing comes for and messages of all protocols that nobody takes, in the world
/// and in a communicator that is gone; one that a matched probe has taken.
async fn left_over(world: Communicator) -> Result<(), Error> {
    let (next, copy) = (Rank((world.rank().0 + 1) % world.size()), world.duplicate().await?);
    for comm in [&world, &copy] {
        drop(comm.irecv(vec![0u8; 8], ANY_SOURCE, Tag(1)));
        drop(comm.irecv(vec![0u8; 80_000], next, Tag(1)));
        for length in [8, 150, 500, 1_000_000] {
            drop(comm.isend(vec![0u8; length], next, Tag(2)));
            drop(comm.issend(vec![0u8; length], next, Tag(2)));
        }
    }
    std::mem::forget(world.mprobe(ANY_SOURCE, Tag(2)).await?);
    Ok(())
}

#[test]
fn messages_left_over_do_not_keep_a_run() {
    for ranks in [1, 2, 5] {
        for workers in [1, 2, 8] {
            run_well(with_protocols(config(ranks, workers), 200, 1000), left_over);
        }
    }
}
