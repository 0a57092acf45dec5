//! A value travels round a ring of ranks, in every sync mode.

use talpf::{Config, Error, Rank, SyncMode, exec};
use talpf_runtime::Array;

fn ring(ranks: u32, workers: usize, mode: SyncMode, laps: u32) {
    let mut config = Config { ranks, ..Config::default() };
    config.runtime.workers = workers;
    let ends = exec(config, move |ctx| async move {
        let mine = Array::new(ctx.group(), vec![u64::from(ctx.rank().0); 1], 1)?;
        let inbox = Array::new(ctx.group(), vec![0u64; 1], 1)?;
        let slot = ctx.register_global(&inbox).await?;
        let next = Rank((ctx.rank().0 + 1) % ctx.size());
        for _ in 0..laps * ctx.size() {
            ctx.put(&mine.all(), slot.at(next, 0))?;
            ctx.sync(mode).window(&inbox.all()).spawn()?;
            let copy = ctx.group().task("copy").input(&inbox.all()).output(&mine.all());
            copy.spawn(|inbox, mut mine| mine[0] = inbox[0])?;
        }
        let read = ctx.group().task("read").input(&mine.all()).run(|mine| mine[0])?;
        Ok::<_, Error>(read.await?)
    })
    .unwrap();
    assert_eq!(ends, (0..u64::from(ranks)).collect::<Vec<_>>());
}

#[test]
fn every_mode_on_one_to_thirty_two_ranks() {
    let modes = [
        SyncMode::DEFAULT,
        SyncMode::CACHED,
        SyncMode::CACHED.with_barrier(),
        SyncMode::CACHED.with_ack(),
        SyncMode::msg(1),
        SyncMode::msg(1).with_barrier(),
        SyncMode::msg(1).with_ack(),
    ];
    for workers in [1, 2, 8] {
        for ranks in [1, 2, 3, 4, 7, 32] {
            for mode in modes {
                eprintln!("{ranks} ranks, {workers} workers, {mode}");
                ring(ranks, workers, mode, if ranks > 7 { 1 } else { 3 });
            }
        }
    }
}
