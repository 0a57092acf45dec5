//! The set of parked workers. The protocol is in `README.md` beside this file.

use crate::sync::{AtomicUsize, Mutex, Ordering, fence};

/// Workers that are parked or about to park.
#[derive(Default)]
pub(crate) struct IdleSet {
    count: AtomicUsize,
    workers: Mutex<Vec<usize>>,
}

impl IdleSet {
    /// Adds a worker that has found no work. It must look once more before it parks.
    pub(crate) fn enter(&self, worker: usize) {
        let mut workers = self.workers.lock();
        workers.push(worker);
        self.count.store(workers.len(), Ordering::Relaxed);
        drop(workers);
        fence(Ordering::SeqCst);
    }

    /// Removes a worker that goes on. `false`: somebody has taken it off to wake it.
    pub(crate) fn leave(&self, worker: usize) -> bool {
        let mut workers = self.workers.lock();
        let before = workers.len();
        workers.retain(|&parked| parked != worker);
        self.count.store(workers.len(), Ordering::Relaxed);
        workers.len() < before
    }

    /// Called after work was made: a worker to wake, if any is parked.
    #[inline]
    pub(crate) fn after_push(&self) -> Option<usize> {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) == 0 { None } else { self.take() }
    }

    #[cold]
    fn take(&self) -> Option<usize> {
        let mut workers = self.workers.lock();
        let worker = workers.pop();
        self.count.store(workers.len(), Ordering::Relaxed);
        worker
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use super::*;
    use crate::sync::AtomicU32;
    use loom::sync::Arc;
    use loom::thread;

    /// One worker parks unless it sees work, two pushers make work: loom reports a deadlock if the
    /// worker can sleep through it.
    #[test]
    fn work_is_never_slept_through() {
        loom::model(|| {
            let idle = Arc::new(IdleSet::default());
            let work = Arc::new(AtomicU32::new(0));
            let worker = {
                let (idle, work) = (idle.clone(), work.clone());
                thread::spawn(move || {
                    loop {
                        idle.enter(0);
                        if work.load(Ordering::Relaxed) > 0 {
                            idle.leave(0);
                            return;
                        }
                        thread::park();
                        idle.leave(0);
                    }
                })
            };
            work.store(1, Ordering::Relaxed);
            if idle.after_push() == Some(0) {
                worker.thread().unpark();
            }
            worker.join().unwrap();
        });
    }
}
