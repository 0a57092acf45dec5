//! Wakers of the program that panic, spawn, wait or poll what they wake on the spot.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use talpf_runtime::{Group, Runtime};

use super::{Bystander, Dice, End, Wrong, finish, panic};

/// What a waker does when it wakes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    Panics,
    PanicsAsItDrops,
    Polls,
    Spawns,
    Waits,
    PollsAndPanics,
}

type Polled = Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>;

struct Bell {
    what: What,
    group: Group,
    future: Polled,
    me: Weak<Bell>,
}

impl Bell {
    /// Polls the future once more. It may be woken while it is polled.
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
            What::PanicsAsItDrops => {}
            What::Panics => panic(),
            What::Polls => self.poll(),
            What::PollsAndPanics => {
                self.poll();
                panic()
            }
            What::Spawns => {
                let _ = self.group.task("of a waker").spawn(|| ());
            }
            What::Waits => {
                let _ = self.group.wait_blocking();
            }
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        if matches!(self.what, What::PanicsAsItDrops) && !thread::panicking() {
            panic()
        }
    }
}

pub(super) fn episode(dice: &mut Dice) -> Result<u64, Wrong> {
    let runtime = Runtime::new(super::runtime(dice))?;
    let mut bystander = Bystander::new(&runtime)?;
    // What a bell waits for is not the group that is waited for here.
    let group = runtime.group("waited for", 1);
    let count = 1 + dice.below(5);
    let mut bells = Vec::new();
    for _ in 0..count {
        bystander.go_on(&runtime, dice)?;
        let polled = future(dice, &group)?;
        let what = dice.pick(What::value_variants());
        super::show(&what);
        let bell = Arc::new_cyclic(|me| Bell {
            what,
            group: group.clone(),
            future: Mutex::new(Some(polled)),
            me: Weak::clone(me),
        });
        if dice.one_in(2) {
            bell.poll();
        } else {
            // A task polls it, and so keeps its waker, too.
            let polls = Arc::downgrade(&bell);
            runtime.task("polls").spawn(move || {
                let _ = polls.upgrade().map(|bell| bell.poll());
            })?;
        }
        bells.push(bell);
        bystander.go_on(&runtime, dice)?;
    }
    if dice.one_in(3) {
        group.cancel("planned to fail");
    }
    super::expect("the group", super::end_of(group.wait_blocking())?, &[End::Well, End::Fails])?;
    finish(runtime, &bystander, &[End::Well, End::Fails])?;
    for bell in bells {
        let _ = thread::spawn(move || drop(bell)).join();
    }
    Ok(count as u64)
}

/// Something that ends with tasks of the group.
fn future(
    dice: &mut Dice,
    group: &Group,
) -> Result<Pin<Box<dyn Future<Output = ()> + Send>>, Wrong> {
    let pause = Duration::from_micros(dice.below(200) as u64);
    let sleeps = group.clone();
    let slow = group.task("slow").run_async(move || async move { sleeps.wait_for(pause).await })?;
    let wait = group.wait();
    Ok(match dice.below(3) {
        0 => Box::pin(async move { drop(slow.await) }),
        1 => Box::pin(async move { drop(wait.await) }),
        _ => Box::pin(group.wait_for(pause)),
    })
}
