//! Atomics that travel with their claims.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use ibverbs_sim::{ShmConfig, ShmRail};
use talpf::{Error, Rank, SyncMode, hook_on_rail};

use crate::common;
use crate::counting_rail::{CountingRail, Counts};

const ADDS: usize = 100;
/// Messages of the beginning, the sync and the end of the run, at most.
const OTHERS: usize = 60;

#[test]
fn an_atomic_in_a_window_takes_one_message_each_way() {
    let _watchdog = common::watchdog("two processes");
    let counts = Arc::new(Counts::default());
    let rails = ShmRail::mesh(2, &ShmConfig::default()).unwrap();
    thread::scope(|scope| {
        for rail in rails {
            let rail = Arc::new(CountingRail::new(rail, &counts));
            let main = async |ctx: talpf::Context| {
                let counter = common::array(&ctx, vec![0u64])?;
                let slot = ctx.register_global(&counter).await?;
                if ctx.rank() == Rank(0) {
                    ctx.sync(SyncMode::msg(ADDS as u32)).window(&counter.all()).await?;
                    assert_eq!(common::read(&ctx, &counter).await?, [ADDS as u64]);
                    return Ok::<_, Error>(());
                }
                let found = common::array(&ctx, vec![0u64])?;
                for _ in 0..ADDS {
                    ctx.fetch_and_add(slot.at(Rank(0), 0), 1, &found.all())?;
                }
                ctx.sync(SyncMode::msg(0)).await?;
                assert_eq!(common::read(&ctx, &found).await?, [ADDS as u64 - 1]);
                Ok(())
            };
            scope.spawn(move || hook_on_rail(rail, common::config(2, 1), main).unwrap());
        }
    });
    let messages = counts.messages.load(Ordering::SeqCst);
    assert!(messages <= 2 * ADDS + OTHERS, "{messages} messages for {ADDS} atomics");
}
