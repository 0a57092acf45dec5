//! Wakers of the program that panic, spawn, wait or poll their future on the spot.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use talpf_runtime::{Group, Runtime};

use super::{Bystander, EpisodeError, Outcome, Rng, finish, panic};

/// Action of a waker.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum WakerAction {
    Panics,
    PanicsAsItDrops,
    Polls,
    Spawns,
    Waits,
    PollsAndPanics,
}

type Polled = Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>;

struct Bell {
    what: WakerAction,
    group: Group,
    future: Polled,
    me: Weak<Bell>,
}

impl Bell {
    /// Polls the future once more. The future may be woken while it is polled.
    fn poll(&self) {
        let Some(me) = self.me.upgrade() else { return };
        let waker = Waker::from(me);
        let Ok(mut future) = self.future.try_lock() else { return };
        if let Some(polled) = &mut *future
            && polled.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
        {
            *future = None;
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match self.what {
            WakerAction::PanicsAsItDrops => {}
            WakerAction::Panics => panic(),
            WakerAction::Polls => self.poll(),
            WakerAction::PollsAndPanics => {
                self.poll();
                panic()
            }
            WakerAction::Spawns => {
                let _ = self.group.task("of a waker").spawn(|| ());
            }
            WakerAction::Waits => {
                let _ = self.group.wait_blocking();
            }
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        if matches!(self.what, WakerAction::PanicsAsItDrops) && !thread::panicking() {
            panic()
        }
    }
}

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let runtime = Runtime::new(super::runtime(rng))?;
    let mut bystander = Bystander::new(&runtime)?;
    // The bells must not wait for the group that is waited for here.
    let group = runtime.group("waited for", 1);
    let count = 1 + rng.below(5);
    let mut bells = Vec::new();
    for _ in 0..count {
        bystander.go_on(&runtime, rng)?;
        let polled = future(rng, &group)?;
        let what = rng.pick(WakerAction::value_variants());
        super::show(&what);
        let bell = Arc::new_cyclic(|me| Bell {
            what,
            group: group.clone(),
            future: Mutex::new(Some(polled)),
            me: Weak::clone(me),
        });
        if rng.one_in(2) {
            bell.poll();
        } else {
            // The task that polls the bell keeps its waker too.
            let polls = Arc::downgrade(&bell);
            runtime.task("polls").spawn(move || {
                let _ = polls.upgrade().map(|bell| bell.poll());
            })?;
        }
        bells.push(bell);
        bystander.go_on(&runtime, rng)?;
    }
    if rng.one_in(3) {
        group.cancel("planned to fail");
    }
    super::expect(
        "the group",
        super::outcome_of(group.wait_blocking())?,
        &[Outcome::Completes, Outcome::Fails],
    )?;
    finish(runtime, &bystander, &[Outcome::Completes, Outcome::Fails])?;
    for bell in bells {
        let _ = thread::spawn(move || drop(bell)).join();
    }
    Ok(count as u64)
}

/// Returns a future that completes with tasks of the group.
fn future(
    rng: &mut Rng,
    group: &Group,
) -> Result<Pin<Box<dyn Future<Output = ()> + Send>>, EpisodeError> {
    let pause = Duration::from_micros(rng.below(200) as u64);
    let sleeps = group.clone();
    let slow = group.task("slow").run_async(move || async move { sleeps.wait_for(pause).await })?;
    let wait = group.wait();
    Ok(match rng.below(3) {
        0 => Box::pin(async move { drop(slow.await) }),
        1 => Box::pin(async move { drop(wait.await) }),
        _ => Box::pin(group.wait_for(pause)),
    })
}
