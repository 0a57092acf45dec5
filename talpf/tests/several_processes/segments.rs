//! Arrays lie in memory that the peers map: what is put or got needs no packets.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use ibverbs_sim::{ShmConfig, ShmRail};
use talpf::{Context, Error, Rank, SyncMode, hook_on_rail};

use crate::common;
use crate::counting_rail::{CountingRail, Counts};

/// Elements of an array: far more bytes than travel with a claim.
const LEN: usize = 20_000;
const STEPS: usize = 5;

/// Puts an array to the peer and gets one from it, in each step.
async fn exchange(ctx: Context) -> Result<(), Error> {
    let peer = Rank(1 - ctx.rank().0);
    let mine = common::array(&ctx, vec![u64::from(ctx.rank().0); LEN])?;
    let [inbox, got] = [0; 2].map(|_| common::array(&ctx, vec![9u64; LEN]));
    let (inbox, got) = (inbox?, got?);
    let (slot, source) = (ctx.register_global(&inbox).await?, ctx.register_global(&mine).await?);
    ctx.register_local(&got)?;
    for _ in 0..STEPS {
        ctx.put(&mine.all(), slot.at(peer, 0))?;
        ctx.get(source.at(peer, 0), &got.all())?;
        ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).expose(&mine.all()).await?;
    }
    let expected = vec![u64::from(peer.0); LEN];
    assert_eq!(common::read(&ctx, &inbox).await?, expected);
    assert_eq!(common::read(&ctx, &got).await?, expected);
    Ok(())
}

#[test]
fn data_of_arrays_is_not_sent_as_packets() {
    let _watchdog = common::watchdog("two processes");
    let counts = Arc::new(Counts::default());
    let rails = ShmRail::mesh(2, &ShmConfig::default()).unwrap();
    thread::scope(|scope| {
        for rail in rails {
            let rail = CountingRail::new(rail, &counts);
            let config = common::config(2, 1);
            scope.spawn(move || hook_on_rail(Arc::new(rail), config, exchange).unwrap());
        }
    });
    let data = 2 * 2 * STEPS * LEN * size_of::<u64>();
    let sent = counts.sent.load(Ordering::SeqCst);
    // The first request of a connection may be sent before the permit of the peer has come.
    assert!(sent < data / 2, "{sent} bytes in messages, for {data} bytes of data");
}
