//! The cores of this machine.

use std::io;
use std::thread::{Builder, Scope, ScopedJoinHandle, available_parallelism};

use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Cores this process may use.
pub fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Spawns a thread that does not run on the core of the caller, if the process may use others: for
/// what is measured between cores and ends before a scheduler moves threads apart.
///
/// **Errors**: as [`Builder::spawn_scoped`].
pub fn spawn_apart<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let core = sched_getcpu();
    Builder::new().spawn_scoped(scope, move || {
        if let Ok(mut others) = sched_getaffinity(None) {
            others.unset(core);
            // Where there is no other, it stays.
            let _ = sched_setaffinity(None, &others);
        }
        body()
    })
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use super::*;

    /// How many cores a thread may use that is spawned apart from this one.
    fn left() -> usize {
        let count = || sched_getaffinity(None).unwrap().count() as usize;
        std::thread::scope(|scope| spawn_apart(scope, count).unwrap().join().unwrap())
    }

    #[test]
    fn a_thread_apart_leaves_one_core_to_its_parent() {
        let all = sched_getaffinity(None).unwrap().count() as usize;
        assert_eq!(left(), (all - 1).max(1));
    }

    #[test]
    fn beside_a_pinned_thread_it_stays() {
        let pinned = std::thread::spawn(|| {
            let (mut core, here) = (sched_getaffinity(None).unwrap(), sched_getcpu());
            (0..1024).filter(|core| *core != here).for_each(|other| core.unset(other));
            sched_setaffinity(None, &core).unwrap();
            left()
        });
        assert_eq!(pinned.join().unwrap(), 1);
    }
}
