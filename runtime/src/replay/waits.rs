//! The wait of a replayed task for the edges of its next run, and for its own run before.
//!
//! The count is set again whenever the task becomes ready, to the edges that its next run waits
//! for; see `replayed_task.rs`.

use crate::record::{EventCounter, SPAWNING};

/// Number of edges that a task still waits for, with a bias while it runs.
pub(super) struct Waits(EventCounter);

impl Waits {
    pub(super) fn new(edges: u32) -> Self {
        let count = EventCounter::new();
        count.set(edges);
        Waits(count)
    }

    /// Follows an edge to the task. Returns `true` if nothing holds it back any more.
    #[inline]
    pub(super) fn follow_edge(&self) -> bool {
        self.0.take(1)
    }

    /// Begins to count for the next run of a ready task, which waits for `edges` and for the
    /// present run.
    #[inline]
    pub(super) fn begin(&self, edges: u32) {
        self.0.set(SPAWNING + edges);
    }

    /// Ends a run. Returns `true` if nothing holds the next one back.
    #[inline]
    pub(super) fn end(&self) -> bool {
        self.0.take(SPAWNING)
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use loom::thread;

    use super::*;

    const STEPS: usize = 2;

    struct Task {
        waits: Waits,
        /// Relaxed as in a replayed task, for the thread that runs or completes it.
        step: AtomicUsize,
        runs: AtomicBool,
    }

    /// Two tasks: an edge leads from each to the other, and back in the next step.
    type Pair = Arc<[Task; 2]>;

    /// Runs a ready task, and its next run if that becomes ready here.
    fn run(pair: &Pair, own: usize) {
        let (task, other) = (&pair[own], 1 - own);
        let mut threads = Vec::new();
        loop {
            task.waits.begin(1);
            assert!(!task.runs.swap(true, Ordering::Relaxed), "a task waits for itself");
            let step = task.step.load(Ordering::Relaxed);
            let seen = pair[other].step.load(Ordering::Relaxed);
            // The first of the pair runs when the other has done as many steps, the second when the
            // first has done one more.
            assert_eq!(seen, step + own, "it waits for the other, whose step it sees");
            task.runs.store(false, Ordering::Relaxed);
            task.step.store(step + 1, Ordering::Relaxed);
            if pair[other].waits.follow_edge() {
                let pair = Arc::clone(pair);
                threads.push(thread::spawn(move || run(&pair, other)));
            }
            if step + 1 == STEPS || !task.waits.end() {
                break;
            }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn tasks_that_wait_for_each_other_alternate_and_run_once_in_each_step() {
        loom::model(|| {
            let task = |edges| Task {
                waits: Waits::new(edges),
                step: AtomicUsize::new(0),
                runs: AtomicBool::new(false),
            };
            let pair: Pair = Arc::new([task(1), task(1)]);
            assert!(pair[0].waits.follow_edge());
            run(&pair, 0);
            assert!(pair.iter().all(|task| task.step.load(Ordering::Relaxed) == STEPS));
        });
    }
}
