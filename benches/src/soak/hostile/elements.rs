//! Elements of arrays that panic, spawn, wait, or own runtimes and arrays when they drop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use talpf_runtime::{Array, Group, Runtime};

use super::{Bystander, EpisodeError, Outcome, Rng, drop_quietly, finish, panic};

/// Action of an element when it drops.
#[derive(Clone, Copy, Debug)]
enum DropAction {
    Nothing,
    Panics,
    Spawns,
    Waits,
    MakesAnArray,
    Cancels,
}

struct Element {
    what: DropAction,
    group: Group,
    other: Group,
    dropped: Arc<AtomicU64>,
    nested: Option<Array<u64>>,
}

impl Drop for Element {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        match self.what {
            DropAction::Nothing => {}
            DropAction::Panics if std::thread::panicking() => {}
            DropAction::Panics => panic(),
            DropAction::Spawns => {
                let _ = self.group.task("of an element").spawn(|| ());
            }
            DropAction::Waits => {
                let _ = self.other.wait_blocking();
            }
            DropAction::MakesAnArray => {
                let array = Array::new(&self.group, vec![Box::new(7); 3], 1);
                let _ =
                    array.map(|array| self.group.task("uses").inout(&array.all()).spawn(|_| ()));
            }
            DropAction::Cancels => self.other.cancel("planned to fail"),
        }
        self.nested = None;
    }
}

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let runtime = Runtime::new(super::runtime(rng))?;
    let mut bystander = Bystander::new(&runtime)?;
    let other = runtime.group("other", 1);
    let dropped = Arc::new(AtomicU64::new(0));
    let mut made = 0;
    for _ in 0..1 + rng.below(4) {
        let kinds = [
            (4, DropAction::Nothing),
            (1, DropAction::Panics),
            (1, DropAction::Spawns),
            (1, DropAction::Waits),
            (1, DropAction::MakesAnArray),
            (1, DropAction::Cancels),
        ];
        let element = |what, nested| Element {
            what,
            group: runtime.clone(),
            other: other.clone(),
            dropped: Arc::clone(&dropped),
            nested,
        };
        let mut elements = Vec::new();
        for _ in 0..1 + rng.below(5) {
            let nested = rng.one_in(3).then(|| Array::new(&other, vec![1; 5], 2)).transpose()?;
            elements.push(element(*rng.pick_weighted(&kinds), nested));
        }
        made += elements.len() as u64;
        let len = elements.len();
        let array = Array::new(&runtime, elements, 1 + rng.below(len))?;
        bystander.go_on(&runtime, rng)?;
        for at in 0..len {
            let task = runtime.task("uses").inout(&array.region(at..));
            match rng.below(3) {
                0 => {
                    made += 1;
                    let new = element(*rng.pick_weighted(&kinds), None);
                    task.spawn(move |mut all| all[0] = new)?;
                }
                1 => {
                    let array = array.clone();
                    task.spawn(move |_| drop(array))?;
                }
                _ => task.spawn(|_| ())?,
            }
        }
        // Elements may drop here.
        drop_quietly(array);
    }
    super::expect(
        "the other",
        super::outcome_of(other.wait_blocking())?,
        &[Outcome::Completes, Outcome::Fails],
    )?;
    finish(runtime, &bystander, &[Outcome::Completes, Outcome::Fails])?;
    match dropped.load(Ordering::Relaxed) {
        dropped if dropped == made => Ok(made),
        dropped => Err(EpisodeError(format!("{dropped} of {made} elements were dropped"))),
    }
}
