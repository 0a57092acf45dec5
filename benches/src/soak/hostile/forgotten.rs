//! Guards, events, holds, handles and futures that are forgotten.

use std::mem::forget;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use talpf_runtime::operator::Sum;
use talpf_runtime::{Array, Children, Error, Group, PendingEvent, Runtime};

use super::{Bystander, EpisodeError, Outcome, Rng, finish};

/// Value that is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Forgotten {
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

impl Forgotten {
    /// Returns `true` if the task completes all the same.
    fn is_harmless(self) -> bool {
        matches!(self, Forgotten::Handle | Forgotten::Nothing)
    }

    /// Returns `true` if a later task that reads the same element may run.
    fn lets_readers_pass(self) -> bool {
        self.is_harmless() || matches!(self, Forgotten::In | Forgotten::Event | Forgotten::Children)
    }
}

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let runtime = Runtime::new(super::runtime(rng))?;
    let mut bystander = Bystander::new(&runtime)?;
    let drawn: Vec<Forgotten> =
        (0..1 + rng.below(6)).map(|_| rng.pick(Forgotten::value_variants())).collect();
    super::show(&drawn);
    let array = Array::new(&runtime, vec![0u64; drawn.len()], 1 + rng.below(drawn.len()))?;
    let ran = Arc::new(AtomicU64::new(0));
    for (element, &what) in drawn.iter().enumerate() {
        bystander.go_on(&runtime, rng)?;
        spawn(&runtime, &array, element, what)?;
        let ran = Arc::clone(&ran);
        runtime.task("behind").input(&array.region(element..=element)).spawn(move |_| {
            ran.fetch_or(1 << element, Ordering::Relaxed);
        })?;
        bystander.go_on(&runtime, rng)?;
    }
    let hangs = drawn.iter().any(|what| !what.is_harmless());
    finish(runtime, &bystander, if hangs { &[Outcome::Hangs] } else { &[Outcome::Completes] })?;
    let expected = drawn.iter().enumerate().filter(|(_, what)| what.lets_readers_pass());
    let expected = expected.fold(0, |set, (element, _)| set | 1u64 << element);
    match ran.load(Ordering::Relaxed) {
        ran if ran == expected => Ok(drawn.len() as u64),
        ran => Err(EpisodeError(format!("behind {drawn:?} ran {ran:#b} instead of {expected:#b}"))),
    }
}

fn spawn(group: &Group, array: &Array<u64>, element: usize, what: Forgotten) -> Result<(), Error> {
    let part = array.region(element..=element);
    let task = group.task("forgets");
    match what {
        Forgotten::In => task.input(&part).spawn(forget),
        Forgotten::Out => task.output(&part).spawn(forget),
        Forgotten::InOut => task.inout(&part).spawn(forget),
        Forgotten::Concurrent => task.concurrent(&part).spawn(forget),
        Forgotten::Commutative => task.commutative(&part).spawn(forget),
        Forgotten::Reduction => task.reduction(&part, Sum).spawn(forget),
        Forgotten::Lend => task.weak_inout(&part).spawn(forget),
        Forgotten::Event => task.inout(&part).spawn(|_| forget(PendingEvent::of_current_task())),
        Forgotten::Hold => {
            task.inout(&part).on_ready(|ready| forget(ready.hold_back())).spawn(|_| ())
        }
        Forgotten::Suspended => task.inout(&part).spawn_async(|part| async move {
            let _part = part;
            // Neither woken nor dropped.
            let mut never = Box::pin(std::future::pending::<()>());
            std::future::poll_fn(|cx| {
                talpf_runtime::note_wait("nothing");
                never.as_mut().poll(cx)
            })
            .await;
        }),
        Forgotten::Handle => task.inout(&part).run(|_| ()).map(forget),
        Forgotten::Children => task.inout(&part).spawn(|_| forget(Children::of_current_task())),
        Forgotten::Nothing => task.inout(&part).spawn(|_| ()),
    }
}
