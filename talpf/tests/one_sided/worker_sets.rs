//! Ranks with workers of their own, or that share a set of workers with some of the others.

use std::sync::{Arc, Mutex};
use std::thread;

use talpf::{Config, Context, Rank, SyncMode};

use crate::common::{self, with_own_workers};

/// Returns the number of the worker that this thread is.
fn worker() -> usize {
    let thread = thread::current();
    thread.name().and_then(|name| name.strip_prefix("talpf-worker-")).unwrap().parse().unwrap()
}

/// Passes a number round the ranks, in tasks and in the main. Returns the workers of each rank's bodies.
fn workers_of_bodies(config: Config, mode: SyncMode) -> Vec<Vec<usize>> {
    let begin = config.ranks;
    let run = common::run(config, |ctx: Context| async move {
        let workers = Arc::new(Mutex::new(vec![worker()]));
        let note = || {
            let workers = Arc::clone(&workers);
            move || workers.lock().unwrap().push(worker())
        };
        let mine = common::array(&ctx, vec![begin + ctx.rank().0])?;
        let inbox = common::array(&ctx, vec![0u32])?;
        let slot = ctx.register_global(&inbox).await?;
        let next = Rank((ctx.rank().0 + 1) % ctx.size());
        for round in 0..3 * ctx.size() {
            note()();
            ctx.put(&mine.all(), slot.at(next, 0))?;
            ctx.sync(mode).window(&inbox.all()).spawn()?;
            let copy = ctx.group().task("copy").input(&inbox.all()).output(&mine.all());
            // Some are urgent, and some run where they become ready.
            let copy = match round % 3 {
                0 => copy.priority(1),
                1 => copy.inline(),
                _ => copy,
            };
            let noted = note();
            copy.spawn(move |inbox, mut mine| {
                noted();
                mine[0] = inbox[0];
            })?;
            if round % 2 == 0 {
                ctx.group().wait().await?;
            }
        }
        assert_eq!(common::read(&ctx, &mine).await?, [begin + ctx.rank().0]);
        note()();
        Ok(std::mem::take(&mut *workers.lock().unwrap()))
    });
    run.unwrap()
}

#[test]
fn each_rank_runs_on_workers_of_its_own() {
    for mode in common::modes(1) {
        for each in [1, 2] {
            let config = with_own_workers(common::config(3, 1), each);
            for (rank, workers) in workers_of_bodies(config, mode).into_iter().enumerate() {
                let own = rank * each..(rank + 1) * each;
                let are_own = workers.iter().all(|worker| own.contains(worker));
                assert!(are_own, "{mode}, {each} workers, rank {rank}: {workers:?}");
            }
        }
    }
}

#[test]
fn ranks_share_sets_evenly_unless_each_may_have_a_worker() {
    for (ranks, workers, workers_of_first, ranks_of_first) in
        [(4, 2, 1, 2), (5, 2, 1, 3), (5, 3, 1, 3), (5, 5, 2, 2)]
    {
        let mut config = common::config(ranks, workers);
        config.runtime.worker_sets = 2;
        for (rank, ran) in workers_of_bodies(config, SyncMode::DEFAULT).into_iter().enumerate() {
            let is_first = rank < ranks_of_first;
            let are_own = ran.iter().all(|worker| (*worker < workers_of_first) == is_first);
            assert!(are_own, "rank {rank} of {ranks} on {workers} workers: {ran:?}");
        }
    }
}
