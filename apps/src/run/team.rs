//! Threads that start together.

use std::io;
use std::sync::OnceLock;
use std::thread::{self, Builder, ScopedJoinHandle};

use crate::Error;

/// Runs `work` on as many threads as there are `workers`, with the number of each, and returns
/// what they return, in order. No thread begins before all exist: those that were started would
/// wait at a barrier for one that could not be.
///
/// **Errors**: [`Error::Worker`] when a thread cannot be started.
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
            thread.join().expect("a worker does not panic").expect("all were told to go")
        };
        Ok(threads?.into_iter().map(join).collect())
    })
}
