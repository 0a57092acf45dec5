//! The conditions of a sync besides its arrivals, in every combination of mode, barrier and
//! acknowledgement, with a rank that comes late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{self, Gate};
use talpf::{Arrivals, Error, Rank, SyncMode};

/// Checks which of two syncs of rank 0, which puts to rank 1, wait for rank 1, which is late.
fn check(mode: SyncMode, waits: [bool; 2]) {
    let (spawned, open, late) =
        (Gate::default(), Gate::default(), Arc::new(AtomicBool::new(false)));
    let what = format!("{mode:?}");
    let ends = common::run_case(&what, common::config(2, 2), move |ctx| {
        let (spawned, open, late) = (spawned.clone(), open.clone(), Arc::clone(&late));
        async move {
            let inbox = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(1) {
                common::hold(&ctx, &inbox, open, late)?;
                for _ in 0..2 {
                    ctx.sync(mode).window(&inbox.all()).spawn()?;
                }
                spawned.open();
                ctx.group().wait().await?;
                return Ok(());
            }
            let mode = match mode.arrivals {
                Arrivals::Msg(_) => SyncMode { arrivals: Arrivals::Msg(0), ..mode },
                _ => mode,
            };
            let value = common::array(&ctx, vec![7u64])?;
            spawned.passed().await;
            for waits in waits {
                ctx.put(&value.all(), slot.at(Rank(1), 0))?;
                let sync = ctx.sync(mode).spawn()?;
                // Arrivals so far are taken in.
                for _ in 0..10 {
                    ctx.arrivals();
                }
                if waits {
                    open.open();
                }
                sync.await?;
                assert_eq!(late.load(Ordering::SeqCst), waits, "{mode:?}");
            }
            open.open();
            Ok::<_, Error>(())
        }
    });
    if let Err(error) = ends {
        panic!("{what}: {error}");
    }
}

#[test]
fn a_default_sync_waits_for_all_ranks_whatever_it_waits_for_besides() {
    check(SyncMode::DEFAULT, [true, true]);
    check(SyncMode::DEFAULT.with_ack(), [true, true]);
    // The counts of the second round come after the first has ended.
    check(SyncMode { barrier: false, ..SyncMode::DEFAULT }, [false, true]);
}

#[test]
fn a_barrier_and_acknowledgements_hold_together() {
    for mode in [SyncMode::CACHED, SyncMode::msg(1)] {
        check(mode, [false, false]);
        check(mode.with_ack(), [false, true]);
        check(mode.with_barrier(), [true, true]);
        check(mode.with_barrier().with_ack(), [true, true]);
        check(mode.with_ack().with_barrier(), [true, true]);
    }
}
