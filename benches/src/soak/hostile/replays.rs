//! Replayed bodies that panic, keep, forget and exchange guards, and graphs declared in wrong
//! places.

use std::mem::{forget, swap, take};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use talpf_runtime::operator::Sum;
use talpf_runtime::{Array, Error, Group, InOut, Iteration, Runtime, current_step};

use super::{
    Bystander, EpisodeError, Outcome, PanicsAsItDrops, Rng, expect, finish, outcome_of, panic,
};

/// Action of a body in one of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyAction {
    Nothing,
    Panics,
    Forgets,
    Keeps,
    Exchanges,
    TakesOut,
    PushesAnother,
    Cancels,
    Iterates,
    CapturePanics,
    Awaits,
}

use BodyAction::{
    Awaits, Cancels, CapturePanics, Exchanges, Forgets, Iterates, Keeps, Nothing, Panics,
    PushesAnother, TakesOut,
};

const ALL: [(u32, BodyAction); 11] = [
    (6, Nothing),
    (1, Panics),
    (1, Forgets),
    (2, Keeps),
    (2, Exchanges),
    (2, TakesOut),
    (2, PushesAnother),
    (1, Cancels),
    (1, Iterates),
    (1, CapturePanics),
    (2, Awaits),
];

/// Storage of guards that outlive their bodies.
type Shelf = Arc<Mutex<Vec<InOut<u64>>>>;

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let runtime = Runtime::new(super::runtime(rng))?;
    let mut bystander = Bystander::new(&runtime)?;
    bystander.go_on(&runtime, rng)?;
    // The victims have a group of their own, since it may be cancelled.
    let group = runtime.group("victims", 1);
    let array = Array::new(&group, vec![0u64; 12], 1 + rng.below(12))?;
    let shelf = Shelf::default();
    let steps = rng.below(20);
    let drawn: Vec<BodyAction> = (0..1 + rng.below(5)).map(|_| *rng.pick_weighted(&ALL)).collect();
    super::show(&(steps, &drawn));
    let declares = || {
        group.iterate::<Error>(steps, |iteration| {
            for (number, &what) in drawn.iter().enumerate() {
                let at = rng.below(steps.max(1));
                declare(&group, iteration, &array, what, (number, at), &shelf)?;
            }
            if rng.one_in(10) { Err(Error::ShutDown) } else { Ok(()) }
        })
    };
    // Bodies that never run are dropped here, and may panic.
    let refused = match catch_unwind(AssertUnwindSafe(declares)) {
        Ok(Err(Error::ShutDown)) | Err(_) => true,
        Ok(declared) => declared.map(|()| false)?,
    };
    bystander.go_on(&runtime, rng)?;
    // The stored guards are dropped sooner or later.
    let clears = Arc::clone(&shelf);
    let outside = std::thread::spawn(move || {
        while Arc::strong_count(&clears) > 1 {
            let kept = clears.lock().map(|mut kept| take(&mut *kept));
            drop(kept);
            std::thread::yield_now();
        }
    });
    let runs = steps > 0 && !refused;
    let has = |what| runs && drawn.contains(&what);
    // A step that forgets a guard may follow one that stops all steps.
    let ends = has(Panics) || has(Cancels) || has(CapturePanics) || has(Exchanges);
    let permitted: &[Outcome] = match (has(Forgets), ends) {
        (true, true) => &[Outcome::Hangs, Outcome::Fails],
        (true, false) => &[Outcome::Hangs],
        (false, true) => &[Outcome::Completes, Outcome::Fails],
        (false, false) => &[Outcome::Completes],
    };
    let end = outcome_of(group.wait_blocking()).and_then(|end| {
        expect("the steps", end, permitted)?;
        let permitted: &[Outcome] =
            if end == Outcome::Hangs { &[Outcome::Hangs] } else { &[Outcome::Completes] };
        finish(runtime, &bystander, permitted)
    });
    drop((shelf, array));
    if matches!(end, Ok(Outcome::Hangs)) {
        // Bodies of stuck tasks keep the shelf, and with it the thread outside.
        drop(outside);
    } else {
        outside.join().map_err(|_| EpisodeError("the thread outside panicked".to_owned()))?;
    }
    end.map(|_| drawn.len() as u64)
}

fn declare<'a>(
    group: &'a Group,
    iteration: &Iteration<'a>,
    array: &'a Array<u64>,
    what: BodyAction,
    (number, at): (usize, usize),
    shelf: &Shelf,
) -> Result<(), Error> {
    let (left, right) = (2 * number % 12, (2 * number + 1) % 12);
    let task = iteration.task("step");
    let two = || {
        iteration.task("step").inout(&array.region(left..=left)).inout(&array.region(right..=right))
    };
    match what {
        Nothing => two().spawn_borrowed(|left, right| swap(&mut left[0], &mut right[0])),
        Panics => two().spawn_borrowed(move |left, _| {
            let step = current_step().unwrap();
            left[0] += 1;
            if step == at {
                panic()
            }
        }),
        Forgets => two().spawn(move |left, right| {
            let step = current_step().unwrap();
            if step == at {
                forget(left);
            }
            drop(right);
        }),
        Keeps => {
            let shelf = Arc::clone(shelf);
            two().spawn(move |left, right| {
                drop(right);
                let _ = shelf.lock().map(|mut kept| kept.push(left));
            })
        }
        Exchanges => two().spawn_borrowed(swap),
        TakesOut => {
            let shelf = Arc::clone(shelf);
            let parts = [left, right].map(|at| array.region(at..=at));
            task.inout(parts).spawn_borrowed(move |parts| {
                let _ = shelf.lock().map(|mut kept| kept.append(parts));
            })
        }
        PushesAnother => {
            let shelf = Arc::clone(shelf);
            let parts = [left, right].map(|at| array.region(at..=at));
            task.inout(parts).spawn_borrowed(move |parts| {
                let other = shelf.lock().ok().and_then(|mut kept| kept.pop());
                parts.reverse();
                parts.extend(other);
            })
        }
        Cancels => {
            let own = group.clone();
            two().spawn(move |_, _| {
                let step = current_step().unwrap();
                if step == at {
                    own.cancel("planned to fail");
                }
            })
        }
        Iterates => {
            let own = group.clone();
            task.reduction(&array.region(left..), Sum).spawn(move |mut copy| {
                copy[0] += 1;
                let _ = own.iterate::<Error>(2, |inner| inner.task("inner").spawn(|| ()));
            })
        }
        CapturePanics => {
            let kept = PanicsAsItDrops;
            two().spawn(move |_, _| {
                let _kept = &kept;
            })
        }
        Awaits => two().spawn_async(|left, right| async move {
            drop(left);
            tokio::task::yield_now().await;
            drop(right);
        }),
    }
}
