//! The probe of the machine.

use crate::common;
use talpf::{Error, Rank, SyncMode};

#[test]
fn all_ranks_learn_the_same_costs() {
    for (ranks, workers) in [(1, 1), (2, 1), (2, 2), (5, 2)] {
        let config = common::config(ranks, workers);
        let ends = common::run(config, |ctx| async move { ctx.probe().await }).unwrap();
        let first = ends[0];
        assert!(first.l_ns > 0.0 && first.g_ns >= 0.0, "{first:?}");
        assert!(ends.iter().all(|machine| *machine == first), "{ends:?}");
    }
}

#[test]
fn a_cached_pattern_outlives_a_probe() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let mine = common::array(&ctx, vec![0u64])?;
        let inbox = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        let peer = Rank(1 - ctx.rank().0);
        for step in 0..4u64 {
            if step == 2 {
                ctx.probe().await?;
            }
            ctx.group().task("set").output(&mine.all()).spawn(move |mut mine| mine[0] = step)?;
            // A pattern of two puts: that of the probe has one.
            ctx.put(&mine.all(), slot.at(peer, 0))?;
            ctx.put(&mine.all(), slot.at(peer, 0))?;
            ctx.sync(SyncMode::CACHED).window(&inbox.all()).await?;
        }
        common::read(&ctx, &inbox).await
    });
    assert_eq!(ends.unwrap(), [[3], [3]]);
}

#[test]
fn without_room_for_a_slot_it_is_refused() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        ctx.resize_memory_register(0)?;
        ctx.probe().await
    });
    assert!(matches!(ends, Err(Error::Limit { value: 1, limit: 0, .. })), "{ends:?}");
}
