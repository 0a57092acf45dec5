//! Tasks beside a hostile program that must complete whatever it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use talpf_runtime::{Array, Error, Group};

use super::EpisodeError;
use crate::soak::rng::{Rng, mix};

/// Chain of tasks over an array of its own.
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

    /// Spawns a few more tasks of the chain.
    pub(super) fn go_on(&mut self, group: &Group, rng: &mut Rng) -> Result<(), Error> {
        for _ in 0..rng.below(4) {
            self.spawned += 1;
            let (number, last) = (self.spawned, Arc::clone(&self.last));
            let task = group.task("bystander").inout(&self.array.all());
            let task = if rng.one_in(4) { task.inline() } else { task };
            task.spawn(move |mut all| {
                all.iter_mut().for_each(|element| *element = mix(*element, number));
                last.store(all[LEN - 1], Ordering::Release);
            })?;
        }
        Ok(())
    }

    /// Compares the end of the chain with its serial run. Called when no task of the runtime can
    /// run any more.
    pub(super) fn check(&self) -> Result<(), EpisodeError> {
        let expected = (1..=self.spawned).fold(0, mix);
        match self.last.load(Ordering::Acquire) {
            found if found == expected => Ok(()),
            found => Err(EpisodeError(format!(
                "the bystander computed {found:#x} instead of {expected:#x}"
            ))),
        }
    }
}
