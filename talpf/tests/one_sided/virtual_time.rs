//! Programs in virtual time: the results of real runs, and times of the link model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use ibverbs_sim::{DeviceConfig, LinkModel};
use talpf::{Config, Context, Error, PollingFrequency, SyncMode, exec};
use talpf_runtime::{Array, Cost, VirtualTime};

use crate::common;

/// Settings of ranks of two cores, on which a unit of `work` takes a nanosecond.
fn simulated(ranks: u32, link: &str) -> Config {
    let unit = Cost { fixed_ps: 0, unit_ps: 1_000 };
    let costs = Arc::new(BTreeMap::from([("work".to_owned(), unit)]));
    let mut config = Config { ranks, ..Config::default() };
    config.runtime.virtual_time = Some(VirtualTime { cores: 2, costs, task_overhead_ns: 0 });
    let link = Some(LinkModel::parse(link).unwrap());
    config.device = DeviceConfig { link, ..DeviceConfig::default() };
    config
}

/// Passes a number once round the ring, by a long put in each superstep. Returns the number and the
/// time at which each superstep ended.
async fn ring(ctx: Context, elements: usize, work: u64) -> Result<(u64, Vec<u64>), Error> {
    let group = ctx.group().clone();
    let mine = Array::new(&group, vec![u64::from(ctx.rank().0); elements], elements)?;
    let inbox = Array::new(&group, vec![0u64; elements], elements)?;
    let slot = ctx.register_global(&inbox).await?;
    let next = (ctx.rank().0 + 1) % ctx.size();
    let mut times = Vec::new();
    for _ in 0..ctx.size() {
        ctx.put(&mine.all(), slot.at(next, 0))?;
        ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await?;
        let copy = group.task("copy").work("work", work).input(&inbox.all()).output(&mine.all());
        copy.run(|inbox, mut mine| mine.copy_from_slice(&inbox))?.await?;
        times.push(group.clock().now_ns());
    }
    let last = group.task("read").input(&mine.all()).run(move |mine| mine[elements - 1])?.await?;
    Ok((last, times))
}

fn ring_of(ranks: u32, config: Config) -> Vec<(u64, Vec<u64>)> {
    let _watchdog = common::watchdog(&format!("{ranks} ranks"));
    exec(config, async move |ctx| ring(ctx, 1_000, 500).await).unwrap()
}

#[test]
fn supersteps_take_the_time_of_their_messages_and_of_their_work() {
    for ranks in [2, 5, 16] {
        // Without overheads: a put that is not parked is followed by an empty message.
        let config = simulated(ranks, "latency=2us,bandwidth=1GB/s");
        let ends = ring_of(ranks, config);
        let step = 8_000 + 2_000 + 500;
        let times: Vec<u64> = (1..=u64::from(ranks)).map(|steps| steps * step).collect();
        for (rank, end) in ends.into_iter().enumerate() {
            assert_eq!(end, (rank as u64, times.clone()), "rank {rank} of {ranks}");
        }
    }
}

#[test]
fn a_faster_link_and_less_work_take_less_time() {
    let last = |link| ring_of(4, simulated(4, link)).pop().unwrap().1.pop().unwrap();
    assert_eq!(last("ideal"), 4 * 500);
    assert_eq!(last("latency=1us"), 4 * 1_500);
    assert_eq!(last("latency=1us,bandwidth=8GB/s"), 4 * 2_500);
}

#[test]
fn what_arrives_is_found_at_the_next_multiple_of_the_polling_period() {
    for period in [1, 7, 100, 10_000] {
        let mut config = simulated(2, "latency=2300ns,bandwidth=1GB/s");
        config.polling = PollingFrequency::Every(Duration::from_nanos(period));
        let ends = ring_of(2, config);
        // A message takes 10,300 ns, and the work that follows it 500.
        let first = ends[0].1[0];
        let found = 10_300u64.div_ceil(period) * period;
        assert_eq!(first, found + 500, "a period of {period} ns");
    }
}

#[test]
fn two_runs_are_alike_to_the_nanosecond() {
    let link = "kunpeng-4x4";
    let once = || ring_of(16, simulated(16, link));
    assert_eq!(once(), once());
}

#[test]
fn gets_and_counted_syncs_take_their_messages() {
    let config = simulated(2, "latency=1us");
    let _watchdog = common::watchdog("gets");
    let times = exec(config, async move |ctx| {
        let group = ctx.group().clone();
        let mine = Array::new(&group, vec![u64::from(ctx.rank().0); 512], 512)?;
        let copy = Array::new(&group, vec![0u64; 512], 512)?;
        let slot = ctx.register_global(&mine).await?;
        let other = 1 - ctx.rank().0;
        ctx.get(slot.at(other, 0), &copy.all())?;
        ctx.sync(SyncMode::DEFAULT).expose(&mine.all()).await?;
        let value = group.task("read").input(&copy.all()).run(|copy| copy[511])?.await?;
        assert_eq!(value, u64::from(other));
        Ok::<_, Error>(group.clock().now_ns())
    });
    for time_ns in times.unwrap() {
        // At least there and back, and the exchange of counts.
        assert!((2_000..=10_000).contains(&time_ns), "{time_ns}");
    }
}

/// Most gets find no credit at the rank that computes, and have to be retried. While it does, for ten
/// million polling periods, nothing happens.
#[test]
fn gets_that_are_retried_are_polled_for_after_an_event_alone() {
    let mut config = simulated(2, "latency=1us,bandwidth=10GB/s");
    config.polling = PollingFrequency::Every(Duration::from_nanos(100));
    let _watchdog = common::watchdog("gets that are retried");
    let times = exec(config, async move |ctx| {
        let group = ctx.group().clone();
        let values = Array::new(&group, vec![0u64; 600], 600)?;
        let slot = ctx.register_global(&values).await?;
        let copy = Array::new(&group, vec![0u64; 600], 600)?;
        ctx.register_local(&copy)?;
        let other = 1 - ctx.rank().0;
        for round in 1..=3u64 {
            let second = if ctx.rank().0 == 0 { 1_000_000_000 } else { 0 };
            let make = group.task("make").work("work", second).inout(&values.all());
            make.spawn(move |mut values| values.fill(round))?;
            for at in 0..600 {
                ctx.get(slot.at(other, at), &copy.region(at..at + 1))?;
            }
            ctx.sync(SyncMode::DEFAULT).expose(&values.all()).await?;
            let read = group.task("read").input(&copy.all()).run(|copy| copy.to_vec())?;
            assert_eq!(read.await?, [round; 600]);
        }
        Ok::<_, Error>(group.clock().now_ns())
    });
    for time_ns in times.unwrap() {
        assert!((2_999_000_000..3_010_000_000).contains(&time_ns), "{time_ns}");
    }
}

/// Each sync waits, for a virtual second, until the device has carried out what it has posted.
#[test]
fn a_long_way_costs_no_poll_a_period() {
    let mut config = simulated(2, "latency=1s");
    config.polling = PollingFrequency::Every(Duration::from_nanos(100));
    let _watchdog = common::watchdog("a long way");
    let times = exec(config, async move |ctx| {
        let group = ctx.group().clone();
        let mine = Array::new(&group, vec![1u64; 1_000], 1_000)?;
        let inbox = Array::new(&group, vec![0u64; 1_000], 1_000)?;
        let slot = ctx.register_global(&inbox).await?;
        for mode in [SyncMode::DEFAULT, SyncMode::CACHED, SyncMode::CACHED.with_ack()] {
            for _ in 0..3 {
                ctx.put(&mine.all(), slot.at(1 - ctx.rank().0, 0))?;
                ctx.sync(mode).window(&inbox.all()).await?;
            }
        }
        Ok::<_, Error>(group.clock().now_ns())
    });
    for time_ns in times.unwrap() {
        assert!(time_ns >= 9_000_000_000, "{time_ns}");
    }
}

/// A ring of eight items, each of which waits for the credit of the one eight before it.
#[test]
fn items_of_a_queue_take_the_time_of_their_puts_and_credits() {
    let run = || {
        let _watchdog = common::watchdog("a queue");
        let config = simulated(3, "latency=2us,bandwidth=1GB/s");
        let ends = exec(config, async |ctx: Context| {
            let queue = ctx.remote_queue::<u64>(0, 1..3, 8).await?;
            if let Some(mut sender) = queue.sender {
                for item in 0..50 {
                    sender.send(item).await?;
                }
                sender.close().await?;
            }
            let mut taken = Vec::new();
            if let Some(mut receiver) = queue.receiver {
                while let Some(item) = receiver.next().await {
                    taken.push((receiver.source(), item?, ctx.group().clock().now_ns()));
                }
            }
            Ok::<_, Error>(taken)
        });
        ends.unwrap().swap_remove(0)
    };
    let taken = run();
    assert_eq!(taken.len(), 100);
    let times: Vec<u64> = taken.iter().map(|(_, _, time_ns)| *time_ns).collect();
    assert!(times.is_sorted());
    // Six times there and back.
    let all_ns = times[99] - times[0];
    assert!((6 * 4_000..7 * 4_000).contains(&all_ns), "{times:?}");
    assert_eq!(taken, run());
}
