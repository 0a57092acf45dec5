//! Operators of reductions that panic, and elements whose copies panic when they drop.

use std::sync::atomic::{AtomicUsize, Ordering};

use talpf_runtime::operator::{InOrder, Operator};
use talpf_runtime::{Array, Error, Group, Region, Runtime};

use super::{Bystander, EpisodeError, Outcome, Rng, drop_quietly, finish, panic};

/// Number of calls until the panic.
static LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);

fn count() {
    if LEFT.fetch_sub(1, Ordering::Relaxed) == 0 && !std::thread::panicking() {
        panic();
    }
}

/// Number that counts down when it drops.
struct Number(u64);

impl Drop for Number {
    fn drop(&mut self) {
        count();
    }
}

#[derive(Clone, Copy)]
struct Add;

impl Operator<Number> for Add {
    fn identity() -> Number {
        count();
        Number(0)
    }

    fn combine(into: &mut Number, from: Number) {
        count();
        into.0 += from.0;
    }
}

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let runtime = Runtime::new(super::runtime(rng))?;
    let mut bystander = Bystander::new(&runtime)?;
    let len = 1 + rng.below(6);
    let numbers = (0..len).map(|_| Number(0)).collect();
    let array = Array::new(&runtime, numbers, 1 + rng.below(len))?;
    LEFT.store(rng.below(60), Ordering::Relaxed);
    let tasks = 1 + rng.below(12);
    for _ in 0..tasks {
        bystander.go_on(&runtime, rng)?;
        let (from, to) = rng.part(len, len);
        let part = array.region(from..to);
        match rng.one_in(2) {
            true => reduce(&runtime, &part, Add)?,
            false => reduce(&runtime, &part, InOrder(Add))?,
        }
        if rng.one_in(3) {
            runtime.task("read").input(&array.all()).spawn(|_| ())?;
        }
    }
    if rng.one_in(2) {
        let steps = rng.below(5);
        runtime.iterate(steps, |iteration| {
            let task = iteration.task("step").reduction(&array.all(), Add);
            task.spawn(|mut copy| copy[0].0 += 1)
        })?;
    }
    // The elements panic here if every task has completed.
    drop_quietly(array);
    finish(runtime, &bystander, &[Outcome::Completes, Outcome::Fails])?;
    LEFT.store(usize::MAX, Ordering::Relaxed);
    Ok(tasks as u64)
}

fn reduce(
    group: &Group,
    part: &Region<'_, Number>,
    operator: impl Operator<Number>,
) -> Result<(), Error> {
    group.task("reduce").reduction(part, operator).spawn(|mut copy| copy[0].0 += 1)
}
