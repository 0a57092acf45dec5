//! Panics in what tasks are made of: bodies, actions, captures, results, looks, children.

use std::time::Duration;

use clap::ValueEnum;
use talpf_runtime::{Array, Children, Error, Group, PendingEvent, Runtime, fail_current_task};

use super::{Bystander, Dice, End, PanicsAsItDrops, Wrong, drop_quietly, finish, panic};

/// The thing that panics.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
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
    Look,
    Cancellation,
    EventInUnwinding,
    Chunk,
    Main,
}

pub(super) fn episode(dice: &mut Dice) -> Result<u64, Wrong> {
    let runtime = Runtime::new(super::runtime(dice))?;
    let mut bystander = Bystander::new(&runtime)?;
    // Of a group of their own: it may be cancelled.
    let group = runtime.group("victims", 1);
    let array = Array::new(&runtime, vec![0u64; 16], 5)?;
    let count = 1 + dice.below(8);
    for _ in 0..count {
        bystander.go_on(&runtime, dice)?;
        let from = dice.below(16);
        let what = dice.pick(What::value_variants());
        super::show(&what);
        spawn(&group, &array, from, what)?;
        group.task("behind").inout(&array.all()).spawn(|_| ())?;
    }
    bystander.go_on(&runtime, dice)?;
    super::expect("the victims", super::end_of(group.wait_blocking())?, &[End::Well, End::Fails])?;
    finish(runtime, &bystander, &[End::Well, End::Fails])?;
    Ok(count as u64)
}

fn spawn(group: &Group, array: &Array<u64>, from: usize, what: What) -> Result<(), Error> {
    let task = group.task("victim").inout(&array.region(from..));
    match what {
        What::Body => task.spawn(|_| panic()),
        What::AsyncBody => task.spawn_async(|_| async { panic() }),
        What::AfterAwait => task.spawn_async(|part| async move {
            let _part = part;
            tokio::task::yield_now().await;
            panic()
        }),
        What::Action => task.on_ready(|_| panic()).spawn(|_| ()),
        What::Priority => task.priority_with(|| panic()).spawn(|_| ()),
        What::Cost => task.cost_with(|| panic()).spawn(|_| ()),
        What::Capture => {
            let kept = PanicsAsItDrops;
            task.spawn(move |_| {
                let _kept = &kept;
            })
        }
        What::CaptureOfSkipped => {
            let kept = PanicsAsItDrops;
            group.task("fails").output(&array.all()).spawn(|_| panic())?;
            task.spawn(move |_| {
                let _kept = &kept;
            })
        }
        What::Future => {
            let kept = PanicsAsItDrops;
            task.spawn_async(move |_| async move {
                let _kept = kept;
                tokio::task::yield_now().await;
            })
        }
        What::Result => task.run(|_| PanicsAsItDrops).map(drop_quietly),
        What::Payload => task.spawn(|_| std::panic::panic_any(PanicsAsItDrops)),
        What::Child => task.spawn(|part| {
            let _part = part;
            if let Ok(children) = Children::of_current_task() {
                let _ = children.task("child").on_ready(|_| panic()).spawn(|| ());
                let _ = children.task("child").inline().spawn(|| panic());
            }
        }),
        What::Look => {
            let asks = group.clone();
            task.spawn_async(move |_| async move {
                let mut looks = std::sync::atomic::AtomicUsize::new(0);
                *looks.get_mut() = 0;
                let look = move || match looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                    3.. => panic(),
                    _ => None::<()>,
                };
                asks.idle_until(Duration::from_micros(50), look).await;
            })
        }
        What::Cancellation => {
            group.on_cancel(|_| panic());
            let cancels = group.clone();
            task.spawn(move |_| cancels.cancel("planned to fail"))
        }
        What::EventInUnwinding => task.spawn(|_| {
            let _event = PendingEvent::of_current_task();
            let _ = fail_current_task("planned to fail");
            panic()
        }),
        What::Chunk => group.task_loop("chunk", 0..20).grain(3).for_each(|task, chunk| {
            task.spawn(move || {
                if chunk.contains(&7) {
                    panic()
                }
            })
        }),
        What::Main => {
            let main = group.spawn_main("main", async { panic() })?;
            drop(main);
            task.spawn(|_| ())
        }
    }
}
