//! The set of parked workers. The protocol is in `README.md` beside this file.

use talpf_primitives::{AtomicU32, AtomicUsize, Mutex, Ordering, fence};

/// A word that each push of one worker and each parking worker updates: of two updates the later
/// one sees everything before the earlier one.
#[derive(Default)]
pub(crate) struct PushMark(AtomicU32);

impl PushMark {
    #[inline]
    pub(crate) fn touch(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// Workers that are parked or about to park.
#[derive(Default)]
pub(crate) struct IdleSet {
    count: AtomicUsize,
    workers: Mutex<Vec<usize>>,
}

impl IdleSet {
    /// Adds a worker that has found no work. It must search once more before it parks.
    pub(crate) fn enter(&self, worker: usize) {
        let mut workers = self.workers.lock();
        workers.push(worker);
        self.count.store(workers.len(), Ordering::Relaxed);
        drop(workers);
        fence(Ordering::SeqCst);
    }

    /// Returns the number of workers in the set.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts the workers of the set, and sees everything that they did before they entered it.
    pub(super) fn count(&self) -> usize {
        self.workers.lock().len()
    }

    pub(super) fn contains(&self, worker: usize) -> bool {
        self.workers.lock().contains(&worker)
    }

    /// Removes a worker that goes on. Returns `false` if another thread has removed it to wake it.
    pub(crate) fn leave(&self, worker: usize) -> bool {
        let mut workers = self.workers.lock();
        let before = workers.len();
        workers.retain(|&parked| parked != worker);
        self.count.store(workers.len(), Ordering::Relaxed);
        workers.len() < before
    }

    /// Takes out a parked worker to wake, if there is one, after a worker has pushed to its own
    /// deque.
    #[inline]
    pub(crate) fn after_push(&self, mark: &PushMark) -> Option<usize> {
        mark.touch();
        if self.count.load(Ordering::Relaxed) == 0 { None } else { self.take(None) }
    }

    /// Takes out a parked worker as `after_push`, after a push to a shared queue; worker `best`
    /// rather than others.
    pub(crate) fn after_shared_push(&self, best: Option<usize>) -> Option<usize> {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) == 0 { None } else { self.take(best) }
    }

    #[cold]
    fn take(&self, best: Option<usize>) -> Option<usize> {
        let mut workers = self.workers.lock();
        let position = best.and_then(|best| workers.iter().position(|&parked| parked == best));
        let worker = match position {
            Some(position) => Some(workers.swap_remove(position)),
            None => workers.pop(),
        };
        self.count.store(workers.len(), Ordering::Relaxed);
        worker
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Runs a worker that parks unless it sees work, and a thread that makes work: loom reports a
    /// deadlock if the worker can sleep through it.
    fn model(before_search: fn(&PushMark), wake: fn(&IdleSet, &PushMark) -> Option<usize>) {
        loom::model(move || {
            let idle = Arc::new(IdleSet::default());
            let work = Arc::new((AtomicU32::new(0), PushMark::default()));
            let worker = {
                let (idle, work) = (idle.clone(), work.clone());
                thread::spawn(move || {
                    loop {
                        idle.enter(0);
                        before_search(&work.1);
                        if work.0.load(Ordering::Relaxed) > 0 {
                            idle.leave(0);
                            return;
                        }
                        thread::park();
                        idle.leave(0);
                    }
                })
            };
            work.0.store(1, Ordering::Relaxed);
            if wake(&idle, &work.1) == Some(0) {
                worker.thread().unpark();
            }
            worker.join().unwrap();
        });
    }

    #[test]
    fn work_in_a_deque_is_never_slept_through() {
        model(PushMark::touch, IdleSet::after_push);
    }

    #[test]
    fn work_in_an_affinity_queue_is_never_slept_through() {
        model(|_| {}, |idle, _| idle.after_shared_push(Some(0)));
    }

    #[test]
    fn work_from_outside_is_never_slept_through() {
        model(|_| {}, |idle, _| idle.after_shared_push(None));
    }
}
