//! Phasers: the k-th wait ends with the k-th signal of every signaller, and no sooner.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::poll_immediate;
use proptest::prelude::*;
use talpf::{Config, Context, EndError, Error, PhaserWaiter, Rank};

use crate::common::{self, says};

async fn pause(ctx: &Context) {
    ctx.group().wait_for(std::time::Duration::from_nanos(1)).await;
}

#[test]
fn a_phase_ends_once_all_have_signalled() {
    for (ranks, workers) in [(1, 1), (2, 1), (3, 2), (5, 2)] {
        let ends = common::run(common::config(ranks, workers), |ctx| async move {
            let mut phaser = ctx.phaser(0..ctx.size(), 0..ctx.size()).await?;
            let (signaller, waiter) = (&mut phaser.signaller, &mut phaser.waiter);
            let (signaller, waiter) = (signaller.as_mut().unwrap(), waiter.as_mut().unwrap());
            for phase in 0..200 {
                signaller.signal().await?;
                assert_eq!(waiter.wait().await?, phase);
            }
            Ok((signaller.phases(), waiter.phases()))
        });
        assert!(ends.unwrap().iter().all(|end| *end == (200, 200)));
    }
}

#[test]
fn a_signaller_that_does_not_wait_is_ahead_and_a_waiter_holds_up_nobody() {
    let ends = common::run(common::config(3, 1), |ctx| async move {
        let mut phaser = ctx.phaser([1, 2], [0]).await?;
        let notifications = ctx.notifications();
        if let Ok(mut signaller) = phaser.take_signaller() {
            for _ in 0..3_000 {
                signaller.signal().await?;
            }
            notifications.notify(0, ctx.rank().0, 0).await?;
            // Until the waiter has done.
            notifications.wait(0).await?;
            return Ok(0);
        }
        let mut waiter = phaser.take_waiter()?;
        notifications.wait_all([1, 2]).await?;
        for phase in 0..3_000 {
            assert_eq!(waiter.wait().await?, phase);
        }
        assert!(poll_immediate(waiter.wait()).await.is_none(), "no phase more was signalled");
        for rank in [1, 2] {
            notifications.notify(rank, 0, 0).await?;
        }
        Ok(waiter.phases())
    });
    assert_eq!(ends.unwrap(), [3_000, 0, 0]);
}

#[test]
fn a_phaser_without_signallers_never_waits() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let mut phaser = ctx.phaser(std::iter::empty::<u32>(), [1]).await?;
        if let Ok(mut waiter) = phaser.take_waiter() {
            assert_eq!((waiter.wait().await?, waiter.wait().await?), (0, 1));
        }
        Ok(())
    });
    ends.unwrap();
}

#[test]
fn a_wait_that_is_dropped_is_not_counted() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let mut phaser = ctx.phaser([1], [0]).await?;
        if let Ok(mut waiter) = phaser.take_waiter() {
            assert!(poll_immediate(waiter.wait()).await.is_none(), "rank 1 has not signalled");
            ctx.notifications().notify(1, 0, 0).await?;
            assert_eq!((waiter.wait().await?, waiter.wait().await?), (0, 1));
        } else {
            ctx.notifications().wait(0).await?;
            let mut signaller = phaser.take_signaller()?;
            // Signalled at once, whoever awaits that.
            drop(signaller.signal());
            drop(signaller.signal());
        }
        Ok(())
    });
    ends.unwrap();
}

async fn wait_until_error(mut waiter: PhaserWaiter) -> (u64, Error) {
    loop {
        if let Err(error) = waiter.wait().await {
            return (waiter.phases(), error);
        }
    }
}

#[test]
fn a_signaller_that_is_dropped_is_an_error_of_the_next_phase() {
    let ends = common::run(common::config(3, 2), |ctx| async move {
        let mut phaser = ctx.phaser([0, 1], [2]).await?;
        if let Ok(mut signaller) = phaser.take_signaller() {
            for _ in 0..5 + 3 * ctx.rank().0 {
                signaller.signal().await?;
            }
            return Ok(());
        }
        let (phases, error) = wait_until_error(phaser.take_waiter()?).await;
        assert_eq!(phases, 5);
        let EndError::SignallerDropped { rank: Rank(2), signaller: Rank(0), phase: 5 } =
            (match &error {
                Error::End(error) => error,
                error => panic!("{error:?}"),
            })
        else {
            panic!("{error:?}");
        };
        says(&error, &["rank 2", "phase 5", "rank 0"]);
        Ok(())
    });
    ends.unwrap();
}

#[test]
fn a_signaller_lost_in_a_panic_is_an_error() {
    common::quiet_panics();
    let ended = common::run(common::unwatched(2, 2), |ctx| async move {
        let mut phaser = ctx.phaser([0], [1]).await?;
        if let Ok(mut signaller) = phaser.take_signaller() {
            let task = ctx.group().task("signal").run_async(move || async move {
                signaller.signal().await.unwrap();
                panic!("broken");
            })?;
            let _ = task.await;
            return Ok(());
        }
        let (_, error) = wait_until_error(phaser.take_waiter()?).await;
        assert!(matches!(error, Error::End(EndError::Failed { .. })), "{error:?}");
        says(&error, &["rank 1"]);
        Ok(())
    });
    // The run may report the panic of the task.
    if let Err(error) = ended {
        says(&error, &["broken"]);
    }
}

#[test]
fn arguments_that_differ_or_cannot_be_are_an_error_at_all_ranks() {
    let ends = common::run(common::config(3, 1), |ctx| async move {
        let differs = u32::from(ctx.rank() == Rank(2));
        let other = if differs == 1 { "rank 0" } else { "rank 2" };
        let error = ctx.phaser([differs], [0]).await.unwrap_err();
        says(&error, &["phaser", "signallers", other]);
        let error = ctx.phaser([0], [differs]).await.unwrap_err();
        says(&error, &["phaser", "waiters", other]);
        says(&ctx.phaser([7], [0]).await.unwrap_err(), &["rank 7", "3 ranks"]);
        let mut phaser = ctx.phaser([0], [1]).await?;
        match ctx.rank() {
            Rank(0) => says(&phaser.take_waiter().unwrap_err(), &["rank 0 has no waiter"]),
            _ => says(&phaser.take_signaller().unwrap_err(), &["has no signaller"]),
        }
        Ok(())
    });
    ends.unwrap();
}

#[test]
fn ends_fail_with_the_rank_that_failed() {
    for failing in [0, 1] {
        let ended = common::run(common::unwatched(2, 2), move |ctx| async move {
            let mut phaser = ctx.phaser(0..2, 0..2).await?;
            let (mut signaller, waiter) = (phaser.take_signaller()?, phaser.take_waiter()?);
            if ctx.rank() == Rank(failing) {
                ctx.notifications().wait(0).await?;
                let _kept = signaller;
                return Err::<(), _>(Error::NoSuchSlot { slot: 99 });
            }
            signaller.signal().await?;
            ctx.notifications().notify(failing, 0, 0).await?;
            let (_, error) = wait_until_error(waiter).await;
            // The failing rank may have dropped its end first.
            if !matches!(error, Error::End(EndError::SignallerDropped { .. })) {
                assert!(matches!(error, Error::End(EndError::Failed { .. })), "{error:?}");
                says(&error, &[&format!("rank {failing}"), "slot 99"]);
            }
            Err(error)
        });
        assert!(ended.is_err());
    }
}

#[test]
fn the_report_of_a_hang_names_the_signaller_and_the_phase() {
    let ended = common::run(common::watched(3, 1), |ctx| async move {
        let mut phaser = ctx.phaser([0, 1], [2]).await?;
        let mut signaller = phaser.take_signaller().ok();
        if let Some(signaller) = &mut signaller {
            for _ in 0..=ctx.rank().0 {
                signaller.signal().await?;
            }
        }
        if let Ok(mut waiter) = phaser.take_waiter() {
            waiter.wait().await?;
            return waiter.wait().await.map(drop);
        }
        ctx.notifications().wait(0).await.map(drop)
    });
    let text = ended.unwrap_err().to_string();
    if text.contains("`main` of rank 2 is suspended") {
        assert!(text.contains("rank 2: waits for rank 0 to signal phase 1"), "{text}");
    }
}

/// Ends that a program keeps in a `static`.
#[test]
fn ends_of_a_run_that_has_ended_are_of_no_more_use() {
    let kept = Arc::new(Mutex::new(None));
    let ends = common::run(common::config(1, 1), |ctx| {
        let kept = Arc::clone(&kept);
        async move {
            *kept.lock().unwrap() = Some(ctx.phaser([0], [0]).await?);
            Ok(())
        }
    });
    ends.unwrap();
    let mut phaser = kept.lock().unwrap().take().unwrap();
    let (mut signaller, mut waiter) =
        (phaser.take_signaller().unwrap(), phaser.take_waiter().unwrap());
    let signalled = futures::executor::block_on(signaller.signal());
    assert!(matches!(signalled, Err(Error::RunEnded)), "{signalled:?}");
    let waited = futures::executor::block_on(waiter.wait());
    assert!(matches!(waited, Err(Error::RunEnded)), "{waited:?}");
}

#[derive(Clone, Debug)]
struct Program {
    ranks: u32,
    workers: usize,
    signallers: Vec<u32>,
    waiters: Vec<u32>,
    phases: u64,
    /// Each rank yields after so many signals or waits.
    pauses: Vec<u64>,
}

fn program() -> impl Strategy<Value = Program> {
    let ranks = prop::collection::vec((any::<bool>(), any::<bool>(), 1..20u64), 1..6);
    (ranks, 1..3usize, 0..100u64).prop_map(|(ranks, workers, phases)| {
        let those = |is_one: fn(&(bool, bool, u64)) -> bool| {
            let numbered = (0..).zip(&ranks);
            numbered.filter(|(_, rank)| is_one(rank)).map(|(number, _)| number).collect()
        };
        Program {
            ranks: ranks.len() as u32,
            workers,
            signallers: those(|rank| rank.0),
            waiters: those(|rank| rank.1),
            phases,
            pauses: ranks.iter().map(|rank| rank.2).collect(),
        }
    })
}

/// Signals and waits; every wait finds all signals of its phase.
async fn run(ctx: Context, program: Program, signalled: Arc<[AtomicU64]>) -> Result<(), Error> {
    let Program { signallers, waiters, phases, pauses, .. } = program;
    let phaser = ctx.phaser(signallers.iter().copied(), waiters).await?;
    let (own, pauses) = (ctx.rank().0 as usize, pauses[ctx.rank().0 as usize]);
    let signal = async {
        let Some(mut signaller) = phaser.signaller else { return Ok(()) };
        for phase in 1..=phases {
            signalled[own].store(phase, Ordering::Relaxed);
            signaller.signal().await?;
            if phase % pauses == 0 {
                pause(&ctx).await;
            }
        }
        Ok::<_, Error>(())
    };
    let wait = async {
        let Some(mut waiter) = phaser.waiter else { return Ok(()) };
        for phase in 1..=phases {
            waiter.wait().await?;
            for rank in &signallers {
                assert!(signalled[*rank as usize].load(Ordering::Relaxed) >= phase);
            }
            if phase % pauses == 0 {
                pause(&ctx).await;
            }
        }
        Ok::<_, Error>(())
    };
    let (signals, waits) = futures::join!(signal, wait);
    signals.and(waits)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]
    #[test]
    fn no_wait_ends_before_the_signals_of_its_phase(program in program()) {
        let config: Config = common::config(program.ranks, program.workers);
        let signalled: Arc<[AtomicU64]> = (0..program.ranks).map(|_| AtomicU64::new(0)).collect();
        common::run(config, |ctx| run(ctx, program.clone(), Arc::clone(&signalled))).unwrap();
    }
}
