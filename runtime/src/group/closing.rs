//! The closing of a runtime, which refuses spawns and ends when all accepted tasks are complete.
//!
//! A runtime closes once. A thread outside counts its spawn and then checks whether the runtime
//! closes; the shutdown begins to close and then reads the counts. So for a spawn at the same time
//! either the shutdown sees the count, and waits for the task, or the thread sees the shutdown, and
//! takes the spawn back. A spawn inside a task needs no check: the task is counted.

use talpf_primitives::{AtomicBool, Ordering, fence};

use super::tally::Tally;
use crate::error::Error;

/// A flag that is set once a runtime closes, and never cleared.
#[derive(Default)]
pub(crate) struct Closing(AtomicBool);

impl Closing {
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Counts a spawn outside tasks with `count`, and takes it back with `undo` if the runtime
    /// closes. A spawn that `is_exempt` is accepted nevertheless.
    ///
    /// **Errors**: [`Error::ShutDown`].
    pub(super) fn admit(
        &self,
        is_exempt: impl Fn() -> bool,
        count: impl FnOnce(),
        undo: impl FnOnce(),
    ) -> Result<(), Error> {
        let refuses = || self.has_begun() && !is_exempt();
        // Also before the count: counts that come and go would keep the shutdown awake.
        if refuses() {
            return Err(Error::ShutDown);
        }
        count();
        fence(Ordering::SeqCst);
        if refuses() {
            undo();
            return Err(Error::ShutDown);
        }
        Ok(())
    }
}

/// Returns `true` if every task that `tallies` have counted is complete, mains and services too.
///
/// The completions of all are read before the spawns of any: if they are as many, there was an
/// instant without tasks. Only a task could spawn after that, once the runtime is closing.
pub(super) fn are_complete<'t>(tallies: impl Iterator<Item = &'t Tally> + Clone) -> bool {
    let completed: u64 = tallies.clone().map(Tally::completed).sum();
    // For threads that check for an incomplete task behind a fence of their own after they have
    // counted.
    fence(Ordering::SeqCst);
    completed == tallies.map(Tally::spawned).sum::<u64>()
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::record::Role;

    struct Model {
        closing: Closing,
        tallies: [Tally; 2],
    }

    impl Model {
        fn spawn_outside(&self, tally: usize, is_exempt: bool) -> bool {
            let tally = &self.tallies[tally];
            let count = || tally.count_spawn_outside(Role::Member);
            let undo = || tally.count_completion_outside(Role::Member);
            self.closing.admit(|| is_exempt, count, undo).is_ok()
        }

        /// Begins to close, and returns `true` if the shutdown ends at once.
        fn close(&self) -> bool {
            self.closing.begin();
            are_complete(self.tallies.iter())
        }
    }

    fn model() -> Arc<Model> {
        let tallies = [Tally::new(1), Tally::new(1)];
        Arc::new(Model { closing: Closing::default(), tallies })
    }

    #[test]
    fn what_is_accepted_keeps_the_shutdown_and_nothing_is_accepted_after_a_refusal() {
        loom::model(|| {
            let model = model();
            let outsider = thread::spawn({
                let model = model.clone();
                move || [model.spawn_outside(0, false), model.spawn_outside(1, false)]
            });
            let finished = model.close();
            let accepted = outsider.join().unwrap();
            assert!(accepted[0] || !accepted[1], "it does not open again");
            assert!(!finished || accepted == [false; 2], "a spawn that was accepted is lost");
            assert!(!model.spawn_outside(0, false));
            let outstanding: u64 = model.tallies.iter().map(Tally::outstanding).sum();
            assert_eq!(
                outstanding,
                accepted.into_iter().filter(|accepted| *accepted).count() as u64
            );
        });
    }

    /// Runs a task of one group that spawns into the other while the runtime closes, through a
    /// thread that it waits for.
    #[test]
    fn a_task_that_runs_is_not_refused_and_not_overtaken() {
        loom::model(|| {
            let model = model();
            model.tallies[0].count_spawn_outside(Role::Member);
            let task = thread::spawn({
                let model = model.clone();
                move || {
                    assert!(model.spawn_outside(1, true));
                    model.tallies[0].count_completion_outside(Role::Member);
                }
            });
            assert!(!model.close(), "the second task is not complete");
            task.join().unwrap();
        });
    }
}
