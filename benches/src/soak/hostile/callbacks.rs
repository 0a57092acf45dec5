//! Panics in the parts of tasks: bodies, actions, captures, results, polls, children.

use std::time::Duration;

use clap::ValueEnum;
use talpf_runtime::{Array, Children, Error, Group, PendingEvent, Runtime, fail_current_task};

use super::{Bystander, EpisodeError, Outcome, PanicsAsItDrops, Rng, drop_quietly, finish, panic};

/// Code that panics.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PanicSite {
    Body,
    AsyncBody,
    AfterAwait,
    Action,
    Priority,
    Cost,
    Capture,
    CaptureOfSkipped,
    Future,
    Result,
    Payload,
    Child,
    Poll,
    Cancellation,
    EventInUnwinding,
    Chunk,
    Main,
}

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let runtime = Runtime::new(super::runtime(rng))?;
    let mut bystander = Bystander::new(&runtime)?;
    // The victims have a group of their own, since it may be cancelled.
    let group = runtime.group("victims", 1);
    let array = Array::new(&runtime, vec![0u64; 16], 5)?;
    let count = 1 + rng.below(8);
    for _ in 0..count {
        bystander.go_on(&runtime, rng)?;
        let from = rng.below(16);
        let what = rng.pick(PanicSite::value_variants());
        super::show(&what);
        spawn(&group, &array, from, what)?;
        group.task("behind").inout(&array.all()).spawn(|_| ())?;
    }
    bystander.go_on(&runtime, rng)?;
    super::expect(
        "the victims",
        super::outcome_of(group.wait_blocking())?,
        &[Outcome::Completes, Outcome::Fails],
    )?;
    finish(runtime, &bystander, &[Outcome::Completes, Outcome::Fails])?;
    Ok(count as u64)
}

fn spawn(group: &Group, array: &Array<u64>, from: usize, what: PanicSite) -> Result<(), Error> {
    let task = group.task("victim").inout(&array.region(from..));
    match what {
        PanicSite::Body => task.spawn(|_| panic()),
        PanicSite::AsyncBody => task.spawn_async(|_| async { panic() }),
        PanicSite::AfterAwait => task.spawn_async(|part| async move {
            let _part = part;
            tokio::task::yield_now().await;
            panic()
        }),
        PanicSite::Action => task.on_ready(|_| panic()).spawn(|_| ()),
        PanicSite::Priority => task.priority_with(|| panic()).spawn(|_| ()),
        PanicSite::Cost => task.cost_with(|| panic()).spawn(|_| ()),
        PanicSite::Capture => {
            let kept = PanicsAsItDrops;
            task.spawn(move |_| {
                let _kept = &kept;
            })
        }
        PanicSite::CaptureOfSkipped => {
            let kept = PanicsAsItDrops;
            group.task("fails").output(&array.all()).spawn(|_| panic())?;
            task.spawn(move |_| {
                let _kept = &kept;
            })
        }
        PanicSite::Future => {
            let kept = PanicsAsItDrops;
            task.spawn_async(move |_| async move {
                let _kept = kept;
                tokio::task::yield_now().await;
            })
        }
        PanicSite::Result => task.run(|_| PanicsAsItDrops).map(drop_quietly),
        PanicSite::Payload => task.spawn(|_| std::panic::panic_any(PanicsAsItDrops)),
        PanicSite::Child => task.spawn(|part| {
            let _part = part;
            if let Ok(children) = Children::of_current_task() {
                let _ = children.task("child").on_ready(|_| panic()).spawn(|| ());
                let _ = children.task("child").inline().spawn(|| panic());
            }
        }),
        PanicSite::Poll => {
            let asks = group.clone();
            task.spawn_async(move |_| async move {
                let mut polls = std::sync::atomic::AtomicUsize::new(0);
                *polls.get_mut() = 0;
                let poll = move || match polls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                    3.. => panic(),
                    _ => None::<()>,
                };
                asks.idle_until(Duration::from_micros(50), poll).await;
            })
        }
        PanicSite::Cancellation => {
            group.on_cancel(|_| panic());
            let cancels = group.clone();
            task.spawn(move |_| cancels.cancel("planned to fail"))
        }
        PanicSite::EventInUnwinding => task.spawn(|_| {
            let _event = PendingEvent::of_current_task();
            let _ = fail_current_task("planned to fail");
            panic()
        }),
        PanicSite::Chunk => group.task_loop("chunk", 0..20).grain(3).for_each(|task, chunk| {
            task.spawn(move || {
                if chunk.contains(&7) {
                    panic()
                }
            })
        }),
        PanicSite::Main => {
            let main = group.spawn_main("main", async { panic() })?;
            drop(main);
            task.spawn(|_| ())
        }
    }
}
