//! Cores that threads and processes of a measurement may use.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Returns the set of one core.
pub(super) fn only(core: usize) -> CpuSet {
    let mut one = CpuSet::new();
    one.set(core);
    one
}

/// Returns a core, and another one that this thread may use, if there is one.
pub(super) fn two(core: usize) -> CpuSet {
    let mut cores = only(core);
    if let Ok(all) = sched_getaffinity(None)
        && let Some(other) = (0..CpuSet::MAX_CPU).find(|other| *other != core && all.is_set(*other))
    {
        cores.set(other);
    }
    cores
}

/// Runs `action` on some cores, as well as the threads and processes that it starts.
pub(super) fn on<T>(cores: &CpuSet, action: impl FnOnce() -> T) -> T {
    let all = sched_getaffinity(None);
    // A thread that moves measures worse, and nothing wrong.
    let _ = sched_setaffinity(None, cores);
    let result = action();
    let _ = all.and_then(|all| sched_setaffinity(None, &all));
    result
}

/// Keeps this thread, and the threads that it starts, off a core.
pub(super) fn avoid(core: usize) {
    if let Ok(mut cores) = sched_getaffinity(None) {
        cores.unset(core);
        // Without another core, both processes share this one.
        let _ = sched_setaffinity(None, &cores);
    }
}
