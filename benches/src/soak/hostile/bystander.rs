//! Tasks beside a hostile program that come to their end whatever it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use talpf_runtime::{Array, Error, Group};

use super::Wrong;
use crate::soak::dice::{Dice, mix};

/// A chain of tasks over an array of its own.
pub(super) struct Bystander {
    array: Array<u64>,
    spawned: u64,
    last: Arc<AtomicU64>,
}

const LEN: usize = 8;

impl Bystander {
    pub(super) fn new(group: &Group) -> Result<Self, Error> {
        let array = Array::new(group, vec![0; LEN], 3)?;
        Ok(Bystander { array, spawned: 0, last: Arc::default() })
    }

    /// Spawns a few more links of the chain.
    pub(super) fn go_on(&mut self, group: &Group, dice: &mut Dice) -> Result<(), Error> {
        for _ in 0..dice.below(4) {
            self.spawned += 1;
            let (number, last) = (self.spawned, Arc::clone(&self.last));
            let task = group.task("bystander").inout(&self.array.all());
            let task = if dice.one_in(4) { task.inline() } else { task };
            task.spawn(move |mut all| {
                all.iter_mut().for_each(|element| *element = mix(*element, number));
                last.store(all[LEN - 1], Ordering::Release);
            })?;
        }
        Ok(())
    }

    /// Compares the end of the chain with what running it serially gives. Called when nothing of
    /// the runtime can run any more.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let expected = (1..=self.spawned).fold(0, mix);
        match self.last.load(Ordering::Acquire) {
            found if found == expected => Ok(()),
            found => Err(Wrong(format!("the bystander has {found:#x}, not {expected:#x}"))),
        }
    }
}
