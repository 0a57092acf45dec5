//! Code of the program that is called outside bodies: wakers that panic, poll themselves, or do
//! something as they drop; guards that drop where an operation ends.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use crate::common::{self, Gate};
use talpf::{Config, Context, Error, Rank, SyncMode};

/// A waker that calls a closure once, as it wakes or, if it does not, as it drops.
struct Call(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Call {
    fn waker(call: impl FnOnce() + Send + 'static) -> Waker {
        Waker::from(Arc::new(Call(Mutex::new(Some(Box::new(call))))))
    }

    fn call(&self) {
        let call = self.0.lock().unwrap().take();
        call.into_iter().for_each(|call| call());
    }
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        self.call();
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.call();
    }
}

/// Polls `future`, which is pending, once with `waker`.
fn poll_with<F: Future + Unpin>(future: &mut F, waker: Waker) {
    let polled = std::pin::Pin::new(future).poll(&mut TaskContext::from_waker(&waker));
    assert!(polled.is_pending(), "nothing has come");
}

#[test]
fn a_waker_of_a_sync_that_panics_fails_the_run() {
    common::quiet_panics();
    for workers in [1, 2] {
        let _watchdog = common::watchdog("a waker that panics");
        let polled = Gate::default();
        let result = talpf::exec(common::unwatched(2, workers), async move |ctx| {
            let (one, inbox) = (common::array(&ctx, vec![1u64])?, common::array(&ctx, vec![0u64])?);
            let slot = ctx.register_global(&inbox).await?;
            if ctx.rank() == Rank(0) {
                let mut sync = ctx.sync(SyncMode::msg(1)).window(&inbox.all()).spawn()?;
                let another = sync.clone();
                poll_with(&mut sync, Call::waker(|| panic!("no bed")));
                polled.open();
                // The other one is woken all the same.
                another.await?;
                return ctx.sync(SyncMode::msg(1)).await;
            }
            polled.passed().await;
            ctx.put(&one.all(), slot.at(Rank(0), 0))?;
            ctx.sync(SyncMode::msg(0)).await?;
            ctx.sync(SyncMode::msg(1)).await
        });
        common::says(&result.unwrap_err(), &["rank 0", "a waker has panicked: no bed"]);
    }
}

#[test]
fn a_waker_of_an_operation_that_panics_fails_the_run() {
    common::quiet_panics();
    let result = common::run(common::unwatched(1, 2), |ctx| async move {
        let from = common::array(&ctx, vec![1u8; 4096])?;
        let inbox = common::array(&ctx, vec![0u8; 4096])?;
        ctx.register_local(&from)?;
        let slot = ctx.register_global(&inbox).await?;
        let from = ctx.group().task("lend").input(&from.all()).run(|from| from)?.await?;
        let mut put = ctx.round().put(from, slot.at(Rank(0), 0));
        poll_with(&mut put, Call::waker(|| panic!("no bed")));
        ctx.sync(SyncMode::CACHED).window(&inbox.all()).await?;
        ctx.sync(SyncMode::msg(1)).await
    });
    common::says(&result.unwrap_err(), &["rank 0", "a waker has panicked: no bed"]);
}

/// The drop of a waker ends the operation that it is registered with.
#[test]
fn a_waker_that_drops_as_another_takes_its_place_may_end_the_operation() {
    let ends = common::run(common::watched(1, 1), |ctx| async move {
        let from = common::array(&ctx, vec![1u8; 4096])?;
        let inbox = common::array(&ctx, vec![0u8; 4096])?;
        ctx.register_local(&from)?;
        let slot = ctx.register_global(&inbox).await?;
        let from = ctx.group().task("lend").input(&from.all()).run(|from| from)?.await?;
        let mut put = pin!(ctx.round().put(from, slot.at(Rank(0), 0)));
        let inside = ctx.clone();
        let ends = move || {
            let sync = inside.sync(SyncMode::CACHED).window(&inbox.all());
            sync.spawn().unwrap();
            for _ in 0..1000 {
                inside.arrivals();
            }
        };
        poll_with(&mut put, Call::waker(ends));
        Ok::<_, Error>(put.await?.len())
    });
    assert_eq!(ends.unwrap(), [4096]);
}

/// A waiting task polls its sync inside the call of its waker.
#[test]
fn a_waker_that_polls_on_the_spot_is_called_under_no_lock() {
    async fn program(ctx: Context, polled: Gate, woken: Arc<AtomicBool>) -> Result<(), Error> {
        let (one, inbox) = (common::array(&ctx, vec![1u64])?, common::array(&ctx, vec![0u64])?);
        let slot = ctx.register_global(&inbox).await?;
        let peer = Rank(1 - ctx.rank().0);
        if ctx.rank() == Rank(0) {
            let mut sync = ctx.sync(SyncMode::msg(1)).window(&inbox.all()).spawn()?;
            let (mut again, inside) = (sync.clone(), ctx.clone());
            poll_with(
                &mut sync,
                Call::waker(move || {
                    let mut noop = TaskContext::from_waker(Waker::noop());
                    let ended = std::pin::Pin::new(&mut again).poll(&mut noop);
                    inside.arrivals();
                    woken.store(matches!(ended, Poll::Ready(Ok(()))), Ordering::SeqCst);
                }),
            );
            polled.open();
            sync.await?;
        } else {
            polled.passed().await;
            ctx.put(&one.all(), slot.at(peer, 0))?;
            ctx.sync(SyncMode::msg(0)).await?;
        }
        Ok(())
    }
    let woken = Arc::new(AtomicBool::new(false));
    let (seen, polled) = (Arc::clone(&woken), Gate::default());
    let program = move |ctx| program(ctx, polled.clone(), Arc::clone(&woken));
    common::run(common::watched(2, 2), program).unwrap();
    assert!(seen.load(Ordering::SeqCst), "it was woken before the sync had ended");
}

/// The put of `second` has no credit at first and is parked as it is tried again; its guard drops
/// when the window opens, and an inline task that waits for its region opens another one.
#[test]
fn a_put_that_lands_from_a_window_releases_its_source_under_no_lock() {
    let config = Config { credits: 1, ..common::watched(1, 1) };
    common::run(config, |ctx| async move {
        let first = common::array(&ctx, vec![1u64])?;
        let second = common::array(&ctx, vec![2u64])?;
        let inbox = talpf_runtime::Array::new(ctx.group(), vec![0u64; 2], 1)?;
        ctx.register_global(&second).await?;
        let slot = ctx.register_global(&inbox).await?;
        let keep = |tile| ctx.group().task("keep").input(&inbox.tile(tile)).run(|guard| guard);
        let kept = [keep(0)?.await?, keep(1)?.await?];
        ctx.put(&first.all(), slot.at(Rank(0), 0))?;
        ctx.put(&second.all(), slot.at(Rank(0), 1))?;
        let sync = ctx.sync(SyncMode::msg(2)).window(&inbox.tile(0)).window(&inbox.tile(1));
        let ended = sync.spawn()?;
        let other = ctx.lane(1)?.sync(SyncMode::msg(0)).window(&second.all()).spawn()?;
        for guard in kept {
            drop(guard);
        }
        ended.await?;
        other.await?;
        assert_eq!(common::read(&ctx, &inbox).await?, [1, 2]);
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// An error of the program whose text cannot be had.
#[test]
fn an_error_that_panics_as_it_is_shown_ends_the_run() {
    struct Mute;
    impl std::fmt::Display for Mute {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("no words")
        }
    }
    impl From<Error> for Mute {
        fn from(_: Error) -> Self {
            Mute
        }
    }
    common::quiet_panics();
    let _watchdog = common::watchdog("an error that panics");
    let program = async |ctx: Context| match ctx.rank() {
        Rank(1) => Err(Mute),
        _ => Ok(ctx.sync(SyncMode::msg(1)).await?),
    };
    let run = || talpf::exec(common::unwatched(2, 2), program).map(|_| ()).map_err(drop);
    // The error of the run is shown again, to those who call.
    assert!(!matches!(std::panic::catch_unwind(run), Ok(Ok(()))));
}

/// The waker of one wait drops another one that has ended at the same time.
#[test]
fn a_waker_that_drops_a_wait_leaves_its_notification_to_the_next() {
    let ends = common::run(common::watched(1, 1), |ctx| async move {
        let notifications = ctx.notifications();
        let [mut starts, mut first, mut second] = [0, 1, 2].map(|id| notifications.wait(id));
        poll_with(&mut second, Waker::noop().clone());
        poll_with(&mut first, Call::waker(move || drop(second)));
        let both = notifications.clone();
        let notify_both =
            move || [1, 2].into_iter().for_each(|id| drop(both.notify(0, id, 10 * id)));
        poll_with(&mut starts, Call::waker(notify_both));
        notifications.notify(0, 0, 0).await?;
        Ok::<_, Error>([first.await?.value, notifications.wait(2).await?.value])
    });
    assert_eq!(ends.unwrap(), [[10, 20]]);
}
