use talpf_runtime::Array;
use tampi_shim::{Communicator, Error, Rank, Tag, iwait};

use crate::common::run_on_workers;

/// Every rank adds one to what its left neighbour sends and passes it on, all in tasks.
async fn around(world: Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank().0, world.size());
    let (left, right) = (Rank((rank + size - 1) % size), Rank((rank + 1) % size));
    let value = Array::new(world.group(), vec![0u64; 4], 4)?;
    for round in 0..5 {
        if rank > 0 || round > 0 {
            let world = world.clone();
            let task = world.group().task("receive").output(&value.all());
            task.spawn({
                let world = world.clone();
                move |value| iwait(world.irecv(value, left, Tag(3))).expect("in a task")
            })?;
        }
        let task = world.group().task("add").inout(&value.all());
        task.spawn(|mut value| value.iter_mut().for_each(|value| *value += 1))?;
        let task = world.group().task("send").input(&value.all());
        task.spawn({
            let world = world.clone();
            move |value| iwait(world.isend(value, right, Tag(3))).expect("in a task")
        })?;
    }
    let last = world.group().task("read").input(&value.all()).run(|value| value.to_vec())?.await?;
    assert_eq!(last, [u64::from(4 * size + rank + 1); 4]);
    if rank == 0 {
        let (_, status) = world.recv(vec![0u64; 4], left, Tag(3)).await?;
        assert_eq!(status.elements::<u64>(), Some(4));
    }
    Ok(())
}

#[test]
fn tasks_complete_when_their_messages_do() {
    for ranks in [1, 2, 8] {
        run_on_workers(ranks, around);
    }
}
