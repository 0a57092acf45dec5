//! Operators of reductions that panic, and elements that panic as copies of them drop.

use std::sync::atomic::{AtomicUsize, Ordering};

use talpf_runtime::operator::{InOrder, Operator};
use talpf_runtime::{Array, Error, Group, Region, Runtime};

use super::{Bystander, Dice, End, Wrong, drop_quietly, finish, panic};

/// Panics in the call of which the number is up.
static LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);

fn count() {
    if LEFT.fetch_sub(1, Ordering::Relaxed) == 0 && !std::thread::panicking() {
        panic();
    }
}

/// A number that counts whenever it drops.
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

pub(super) fn episode(dice: &mut Dice) -> Result<u64, Wrong> {
    let runtime = Runtime::new(super::runtime(dice))?;
    let mut bystander = Bystander::new(&runtime)?;
    let len = 1 + dice.below(6);
    let numbers = (0..len).map(|_| Number(0)).collect();
    let array = Array::new(&runtime, numbers, 1 + dice.below(len))?;
    LEFT.store(dice.below(60), Ordering::Relaxed);
    let tasks = 1 + dice.below(12);
    for _ in 0..tasks {
        bystander.go_on(&runtime, dice)?;
        let (from, to) = dice.part(len, len);
        let part = array.region(from..to);
        match dice.one_in(2) {
            true => reduce(&runtime, &part, Add)?,
            false => reduce(&runtime, &part, InOrder(Add))?,
        }
        if dice.one_in(3) {
            runtime.task("read").input(&array.all()).spawn(|_| ())?;
        }
    }
    if dice.one_in(2) {
        let steps = dice.below(5);
        runtime.iterate(steps, |iteration| {
            let task = runtime.task("step").reduction(&array.all(), Add);
            task.repeat(iteration, |_, mut copy| copy[0].0 += 1)
        })?;
    }
    // The elements panic here if every task is complete by now.
    drop_quietly(array);
    finish(runtime, &bystander, &[End::Well, End::Fails])?;
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
