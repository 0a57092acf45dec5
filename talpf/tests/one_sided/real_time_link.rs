//! A link model in real time: messages arrive no earlier than it says, and what they bring is the same.

use std::time::Instant;

use ibverbs_sim::{DeviceConfig, LinkModel};
use talpf::{Config, Context, Error, SyncMode, exec};
use talpf_runtime::Array;

use crate::common;

/// Number of supersteps.
const STEPS: u32 = 20;

/// Passes a number from rank to rank, by a put of `elements` in each superstep.
async fn pass_on(ctx: Context, elements: usize) -> Result<u64, Error> {
    let group = ctx.group().clone();
    let mine = Array::new(&group, vec![u64::from(ctx.rank().0); elements], elements)?;
    let inbox = Array::new(&group, vec![0u64; elements], elements)?;
    let slot = ctx.register_global(&inbox).await?;
    let next = (ctx.rank().0 + 1) % ctx.size();
    for _ in 0..STEPS {
        ctx.put(&mine.all(), slot.at(next, 0))?;
        ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await?;
        let copy = group.task("copy").input(&inbox.all()).output(&mine.all());
        copy.run(|inbox, mut mine| mine.copy_from_slice(&inbox))?.await?;
    }
    group
        .task("read")
        .input(&mine.all())
        .run(move |mine| mine[elements - 1])?
        .await
        .map_err(Error::from)
}

#[test]
fn supersteps_last_at_least_as_long_as_their_messages() {
    for (link, elements, step_ns) in
        [("latency=200us", 1, 200_000), ("latency=10us,bandwidth=1GB/s", 12_500, 110_000)]
    {
        for workers in [1, 2] {
            let _watchdog = common::watchdog(link);
            let mut config = Config { ranks: 3, ..Config::default() };
            config.runtime.workers = workers;
            let link = Some(LinkModel::parse(link).unwrap());
            config.device = DeviceConfig { link, ..DeviceConfig::default() };
            let begin = Instant::now();
            let ends = exec(config, async move |ctx| pass_on(ctx, elements).await).unwrap();
            let took_ns = begin.elapsed().as_nanos();
            assert_eq!(ends, (0..3).map(|rank| (rank + 3 * 7 - 20) % 3).collect::<Vec<u64>>());
            let least_ns = u128::from(STEPS) * step_ns;
            assert!(took_ns >= least_ns, "{took_ns} ns, at least {least_ns}");
        }
    }
}
