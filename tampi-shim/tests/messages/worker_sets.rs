//! Ranks with workers of their own: messages wake tasks of ranks that other workers run.

use std::thread;

use tampi_shim::{Communicator, Rank, Tag};

use crate::common;

#[test]
fn each_rank_receives_on_workers_of_its_own() {
    for each in [1, 2] {
        let mut config = common::config(3, 3 * each);
        config.runtime.worker_sets = 3;
        let ended = common::run(config, move |world: Communicator| async move {
            let rank = world.rank().0 as usize;
            let check = move || {
                let thread = thread::current();
                let worker = thread.name().and_then(|name| name.strip_prefix("talpf-worker-"));
                let worker: usize = worker.unwrap().parse().unwrap();
                assert_eq!(worker / each, rank);
            };
            for round in 0..100u32 {
                let (next, before) = ((rank as u32 + 1) % 3, (rank as u32 + 2) % 3);
                let send = world.isend(vec![round], Rank(next), Tag(round));
                let (received, _) = world.recv(vec![0u32], Rank(before), Tag(round)).await?;
                check();
                assert_eq!(received, [round]);
                send.await?;
                check();
            }
            Ok(())
        });
        ended.unwrap();
    }
}
