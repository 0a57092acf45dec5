//! Shutdowns while tasks, and threads outside the runtime, spawn into other groups.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use talpf_runtime::{Error, Group, Runtime};

use super::{EpisodeError, Rng};

#[derive(Default)]
struct Counts {
    accepted: AtomicU64,
    ran: AtomicU64,
    /// Spawns from tasks that were refused.
    refused: AtomicU64,
}

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let runtime = Runtime::new(super::runtime(rng))?;
    let groups: Vec<Group> =
        (0..1 + rng.below(4)).map(|at| runtime.group("link", at as u32)).collect();
    let groups: Arc<[Group]> = groups.into();
    let counts = Arc::new(Counts::default());
    let chains = 1 + rng.below(6);
    for chain in 0..chains {
        let length = rng.below(50);
        spawn(&groups, &counts, chain, length)?;
    }
    let outsiders: Vec<_> = (0..rng.below(3))
        .map(|first| {
            let (groups, counts) = (Arc::clone(&groups), Arc::clone(&counts));
            thread::spawn(move || {
                for at in 0..200 {
                    if spawn(&groups, &counts, first + at, 1).is_err() {
                        return;
                    }
                }
            })
        })
        .collect();
    if rng.one_in(2) {
        thread::yield_now();
    }
    let from_a_task = rng.one_in(4);
    if from_a_task {
        // Must not spin, refused or not.
        let other = Runtime::new(super::runtime(rng))?;
        let ended = other.task("shuts down").run(move || runtime.shut_down())?;
        match other.block_on(ended)?? {
            Ok(()) | Err(Error::BlockingInTask { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        other.shut_down()?;
    } else {
        runtime.shut_down()?;
    }
    for outsider in outsiders {
        outsider.join().map_err(|_| EpisodeError("an outsider panicked".to_owned()))?;
    }
    let count = |count: &AtomicU64| count.load(Ordering::SeqCst);
    let (accepted, ran, refused) =
        (count(&counts.accepted), count(&counts.ran), count(&counts.refused));
    if refused > 0 {
        return Err(EpisodeError(format!("{refused} spawns of tasks were refused")));
    }
    // A runtime that is dropped in a task may end without running the rest.
    if !from_a_task && accepted != ran {
        return Err(EpisodeError(format!("{accepted} tasks were accepted and {ran} ran")));
    }
    Ok(ran)
}

/// Spawns a task that spawns the next one into the next group.
fn spawn(groups: &Arc<[Group]>, counts: &Arc<Counts>, at: usize, left: usize) -> Result<(), Error> {
    let (next, counted) = (Arc::clone(groups), Arc::clone(counts));
    groups[at % groups.len()].task("link").spawn(move || {
        counted.ran.fetch_add(1, Ordering::SeqCst);
        if left > 0 && spawn(&next, &counted, at + 1, left - 1).is_err() {
            counted.refused.fetch_add(1, Ordering::SeqCst);
        }
    })?;
    counts.accepted.fetch_add(1, Ordering::SeqCst);
    Ok(())
}
