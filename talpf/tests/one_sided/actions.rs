//! The action of a task that becomes ready as a window closes may declare the next sync.

use crate::common;
use talpf::{Error, Rank, SyncMode};

#[test]
fn an_action_behind_a_window_spawns_a_sync() {
    for workers in [1, 2] {
        let sums = common::run(common::config(2, workers), move |ctx| async move {
            let one = common::array(&ctx, vec![1u64])?;
            let inboxes = [common::array(&ctx, vec![0u64])?, common::array(&ctx, vec![0u64])?];
            let slots =
                [ctx.register_global(&inboxes[0]).await?, ctx.register_global(&inboxes[1]).await?];
            let peer = Rank(1 - ctx.rank().0);
            ctx.put(&one.all(), slots[0].at(peer, 0))?;
            ctx.sync(SyncMode::msg(1)).window(&inboxes[0].all()).spawn()?;
            let (next, second, slot) = (ctx.lane(1)?, inboxes[1].clone(), slots[1].clone());
            let first = ctx.group().task("first").input(&inboxes[0].all());
            let action = move |_: &_| {
                let round = next.round();
                let sync = next.sync(SyncMode::msg(1)).window(&second.all()).spawn();
                drop(round.put_copy(&[2u64], slot.at(peer, 0)));
                assert!(sync.is_ok());
            };
            let first = first.on_ready(action).run(|first| first[0])?.await?;
            Ok::<_, Error>(first + common::read(&ctx, &inboxes[1]).await?[0])
        });
        assert_eq!(sums.unwrap(), [3, 3], "{workers} workers");
    }
}
