//! Window of one-sided access over MPI, in which every rank puts into the next one's elements.
//!
//! Each rank is a process that `mpirun` starts. Run it with
//!
//! ```text
//! cargo build -p tampi-shim --features mpi --example mpi_window
//! UCX_RCACHE_ENABLE=n mpirun -n 4 target/debug/examples/mpi_window
//! ```
//!
//! The variable is for MPICH before 4.1, which loses puts without it.

use std::sync::Arc;

use talpf_runtime::Array;
use tampi_shim::mpi::{Config, Library, Update, Window, run};
use tampi_shim::{Communicator, Error, Rank, iwait};

const LENGTH: usize = 1000;
/// The element behind those that are put, a counter.
const COUNTER: usize = LENGTH;

pub(crate) fn main() -> Result<(), Error> {
    run(Library::initialize()?, Config::from_environment()?, put_round)
}

/// Puts into the window of the next rank, and checks what has come from the previous one.
async fn put_round(world: Communicator) -> Result<(), Error> {
    let (rank, ranks) = (world.rank().0, world.size());
    let next = Rank((rank + 1) % ranks);
    let window = Arc::new(Window::<u64>::allocate(&world, LENGTH + 1).await?);

    let values = Array::new(world.group(), vec![0u64; LENGTH], LENGTH)?;
    let fill = world.group().task("fill").output(&values.all());
    fill.spawn(move |mut values| values.fill(u64::from(rank)))?;
    // The task is complete when its region may be reused.
    let to = Arc::clone(&window);
    world.group().task("put").input(&values.all()).spawn(move |values| {
        iwait(to.put(values, next, 0)).expect("called in a task");
    })?;
    world.group().wait().await?;
    // What was put is at its target after the flush, and at all targets after the barrier.
    window.flush(next).await?;
    window.fetch_and_op(1, Update::Sum, Rank(0), COUNTER).await?;
    world.barrier().await?;

    let (come, _) = window.get(vec![0; LENGTH], world.rank(), 0).await?;
    let counted = window.fetch_and_op(0, Update::Keep, Rank(0), COUNTER).await?;
    assert_eq!(come, vec![u64::from((rank + ranks - 1) % ranks); LENGTH]);
    assert_eq!(counted, u64::from(ranks));
    if rank == 0 {
        println!("{ranks} ranks have put {LENGTH} elements each into the next one's window");
    }
    Arc::into_inner(window).expect("no task uses it any more").free().await
}
