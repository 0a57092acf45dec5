//! Team of threads that start together.

use std::io;
use std::sync::OnceLock;
use std::thread::{self, Builder, ScopedJoinHandle};

use crate::Error;

/// Runs `work` on `workers` threads with the number of each, and returns their results in order. No
/// thread begins before all exist: the others would wait at a barrier for a thread that could not
/// be started.
///
/// **Errors**: [`Error::Worker`] if a thread cannot be started.
pub(crate) fn run<T: Send>(
    workers: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Result<Vec<T>, Error> {
    let go: OnceLock<bool> = OnceLock::new();
    let (go, work) = (&go, &work);
    thread::scope(|scope| {
        let start = |index: usize| {
            let work = move || go.wait().then(|| work(index));
            let thread = Builder::new().name(format!("worker {index}"));
            let failed = |source: io::Error| Error::Worker { worker: index + 1, workers, source };
            thread.spawn_scoped(scope, work).map_err(failed)
        };
        let threads = (0..workers).map(start).collect::<Result<Vec<_>, _>>();
        go.set(threads.is_ok()).expect("set here only");
        let join = |thread: ScopedJoinHandle<'_, Option<T>>| {
            thread.join().expect("a worker does not panic").expect("every thread was started")
        };
        Ok(threads?.into_iter().map(join).collect())
    })
}
