//! Guards, events, holds, handles and futures that are forgotten.

use std::mem::forget;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use talpf_runtime::operator::Sum;
use talpf_runtime::{Array, Children, Error, Group, PendingEvent, Runtime};

use super::{Bystander, Dice, End, Wrong, finish};

/// The thing that is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    In,
    Out,
    InOut,
    Concurrent,
    Commutative,
    Reduction,
    Lend,
    Event,
    Hold,
    Suspended,
    Handle,
    Children,
    Nothing,
}

impl What {
    /// Returns whether its task is complete all the same.
    fn is_harmless(self) -> bool {
        matches!(self, What::Handle | What::Nothing)
    }

    /// Returns whether a task behind it that reads the same element may run.
    fn lets_readers_pass(self) -> bool {
        self.is_harmless() || matches!(self, What::In | What::Event | What::Children)
    }
}

pub(super) fn episode(dice: &mut Dice) -> Result<u64, Wrong> {
    let runtime = Runtime::new(super::runtime(dice))?;
    let mut bystander = Bystander::new(&runtime)?;
    let drawn: Vec<What> =
        (0..1 + dice.below(6)).map(|_| dice.pick(What::value_variants())).collect();
    super::show(&drawn);
    let array = Array::new(&runtime, vec![0u64; drawn.len()], 1 + dice.below(drawn.len()))?;
    let ran = Arc::new(AtomicU64::new(0));
    for (element, &what) in drawn.iter().enumerate() {
        bystander.go_on(&runtime, dice)?;
        spawn(&runtime, &array, element, what)?;
        let ran = Arc::clone(&ran);
        runtime.task("behind").input(&array.region(element..=element)).spawn(move |_| {
            ran.fetch_or(1 << element, Ordering::Relaxed);
        })?;
        bystander.go_on(&runtime, dice)?;
    }
    let hangs = drawn.iter().any(|what| !what.is_harmless());
    finish(runtime, &bystander, if hangs { &[End::Hangs] } else { &[End::Well] })?;
    let expected = drawn.iter().enumerate().filter(|(_, what)| what.lets_readers_pass());
    let expected = expected.fold(0, |set, (element, _)| set | 1u64 << element);
    match ran.load(Ordering::Relaxed) {
        ran if ran == expected => Ok(drawn.len() as u64),
        ran => Err(Wrong(format!("behind {drawn:?} ran {ran:#b} instead of {expected:#b}"))),
    }
}

fn spawn(group: &Group, array: &Array<u64>, element: usize, what: What) -> Result<(), Error> {
    let part = array.region(element..=element);
    let task = group.task("forgets");
    match what {
        What::In => task.input(&part).spawn(forget),
        What::Out => task.output(&part).spawn(forget),
        What::InOut => task.inout(&part).spawn(forget),
        What::Concurrent => task.concurrent(&part).spawn(forget),
        What::Commutative => task.commutative(&part).spawn(forget),
        What::Reduction => task.reduction(&part, Sum).spawn(forget),
        What::Lend => task.weak_inout(&part).spawn(forget),
        What::Event => task.inout(&part).spawn(|_| forget(PendingEvent::of_current_task())),
        What::Hold => task.inout(&part).on_ready(|ready| forget(ready.hold_back())).spawn(|_| ()),
        What::Suspended => task.inout(&part).spawn_async(|part| async move {
            let _part = part;
            // Neither woken nor dropped.
            let mut never = Box::pin(std::future::pending::<()>());
            std::future::poll_fn(|cx| {
                talpf_runtime::note_wait("nothing");
                never.as_mut().poll(cx)
            })
            .await;
        }),
        What::Handle => task.inout(&part).run(|_| ()).map(forget),
        What::Children => task.inout(&part).spawn(|_| forget(Children::of_current_task())),
        What::Nothing => task.inout(&part).spawn(|_| ()),
    }
}
