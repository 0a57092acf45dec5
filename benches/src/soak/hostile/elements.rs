//! Elements of arrays that panic, spawn, wait, or own runtimes and arrays when they drop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use talpf_runtime::{Array, Group, Runtime};

use super::{Bystander, Dice, End, Wrong, drop_quietly, finish, panic};

/// The act of an element when it drops.
#[derive(Clone, Copy, Debug)]
enum What {
    Nothing,
    Panics,
    Spawns,
    Waits,
    MakesAnArray,
    Cancels,
}

struct Element {
    what: What,
    group: Group,
    other: Group,
    dropped: Arc<AtomicU64>,
    nested: Option<Array<u64>>,
}

impl Drop for Element {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        match self.what {
            What::Nothing => {}
            What::Panics if std::thread::panicking() => {}
            What::Panics => panic(),
            What::Spawns => {
                let _ = self.group.task("of an element").spawn(|| ());
            }
            What::Waits => {
                let _ = self.other.wait_blocking();
            }
            What::MakesAnArray => {
                let array = Array::new(&self.group, vec![Box::new(7); 3], 1);
                let _ =
                    array.map(|array| self.group.task("uses").inout(&array.all()).spawn(|_| ()));
            }
            What::Cancels => self.other.cancel("planned to fail"),
        }
        self.nested = None;
    }
}

pub(super) fn episode(dice: &mut Dice) -> Result<u64, Wrong> {
    let runtime = Runtime::new(super::runtime(dice))?;
    let mut bystander = Bystander::new(&runtime)?;
    let other = runtime.group("other", 1);
    let dropped = Arc::new(AtomicU64::new(0));
    let mut made = 0;
    for _ in 0..1 + dice.below(4) {
        let kinds = [
            (4, What::Nothing),
            (1, What::Panics),
            (1, What::Spawns),
            (1, What::Waits),
            (1, What::MakesAnArray),
            (1, What::Cancels),
        ];
        let element = |what, nested| Element {
            what,
            group: runtime.clone(),
            other: other.clone(),
            dropped: Arc::clone(&dropped),
            nested,
        };
        let mut elements = Vec::new();
        for _ in 0..1 + dice.below(5) {
            let nested = dice.one_in(3).then(|| Array::new(&other, vec![1; 5], 2)).transpose()?;
            elements.push(element(*dice.weigh(&kinds), nested));
        }
        made += elements.len() as u64;
        let len = elements.len();
        let array = Array::new(&runtime, elements, 1 + dice.below(len))?;
        bystander.go_on(&runtime, dice)?;
        for at in 0..len {
            let task = runtime.task("uses").inout(&array.region(at..));
            match dice.below(3) {
                0 => {
                    made += 1;
                    let new = element(*dice.weigh(&kinds), None);
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
    super::expect("the other", super::end_of(other.wait_blocking())?, &[End::Well, End::Fails])?;
    finish(runtime, &bystander, &[End::Well, End::Fails])?;
    match dropped.load(Ordering::Relaxed) {
        dropped if dropped == made => Ok(made),
        dropped => Err(Wrong(format!("{dropped} of {made} elements were dropped"))),
    }
}
