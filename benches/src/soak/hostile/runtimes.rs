//! Arrays and groups of one runtime used in another, and runtimes that are created, used and ended
//! while tasks of others run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use talpf_runtime::{Array, Error, Runtime};

use super::{Bystander, EpisodeError, Rng};
use crate::soak::rng::mix;

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let runtimes = (0..2 + rng.below(2)).map(|_| Runtime::new(super::runtime(rng)));
    let runtimes = runtimes.collect::<Result<Vec<_>, _>>()?;
    let owner = rng.below(runtimes.len());
    let mut bystander = Bystander::new(&runtimes[0])?;
    let array = Array::new(&runtimes[owner], vec![0u64; 6], 1 + rng.below(6))?;
    let last = Arc::new(AtomicU64::new(0));
    let steps = 1 + rng.below(40) as u64;
    let mut expected = [0u64; 6];
    for number in 0..steps {
        let spawner = rng.below(runtimes.len());
        let runtime = &runtimes[spawner];
        bystander.go_on(&runtimes[0], rng)?;
        let (from, to) = rng.part(6, 6);
        let task = runtime.task("step").inout(&array.region(from..to));
        let nests = rng.one_in(8).then(|| super::runtime(rng));
        let spawned = task.spawn(move |mut part| {
            part.iter_mut().for_each(|element| *element = mix(*element, number));
            nests.into_iter().for_each(|config| drop(nested(config)));
        });
        match spawned {
            Err(Error::OtherRuntime { .. }) if spawner != owner => {}
            Ok(()) if spawner == owner => {
                expected[from..to].iter_mut().for_each(|element| *element = mix(*element, number));
            }
            Err(error) => return Err(error.into()),
            Ok(()) => {
                return Err(EpisodeError("an array of another runtime was accepted".to_owned()));
            }
        }
    }
    let keeps = Arc::clone(&last);
    runtimes[owner].task("read").input(&array.all()).spawn(move |all| {
        keeps.store(all.iter().fold(0, |sum, element| mix(sum, *element)), Ordering::Release);
    })?;
    if rng.one_in(2) {
        drop(array);
    }
    for runtime in &runtimes {
        runtime.wait_blocking()?;
    }
    let expected = expected.iter().fold(0, |sum, element| mix(sum, *element));
    match last.load(Ordering::Acquire) {
        found if found == expected => {}
        found => {
            return Err(EpisodeError(format!("the array has {found:#x} instead of {expected:#x}")));
        }
    }
    bystander.check()?;
    // In any order, also at the same time.
    let ends = runtimes.into_iter().map(|runtime| thread::spawn(|| runtime.shut_down()));
    for end in ends.collect::<Vec<_>>() {
        end.join().map_err(|_| EpisodeError("a shutdown panicked".to_owned()))??;
    }
    Ok(steps)
}

/// Creates and uses a runtime within a task, and drops its last handle there.
fn nested(config: talpf_runtime::Config) -> Result<(), Error> {
    let runtime = Runtime::new(config)?;
    let array = Array::new(&runtime, vec![0u64; 4], 2)?;
    for _ in 0..5 {
        runtime.task("nested").inout(&array.all()).spawn(|mut all| all[0] += 1)?;
    }
    Ok(())
}
