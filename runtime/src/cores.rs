//! The cores of this machine.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::thread::{Builder, Scope, ScopedJoinHandle, available_parallelism};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Returns the number of cores that this process may use.
pub fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Number of words of a [`CoreMask`].
const MASK_WORDS: usize = CpuSet::MAX_CPU / u64::BITS as usize;

/// A set of cores of a machine: bit `b` of word `w` stands for core `64 w + b`.
pub type CoreMask = [u64; MASK_WORDS];

/// Returns the cores that this process may use, as many as [`cores`] returns: a quota smaller than
/// the affinity leaves the first ones.
pub fn core_mask() -> CoreMask {
    let mut mask = [0; MASK_WORDS];
    let allowed = sched_getaffinity(None);
    // Beyond the cores that the call knows, the first ones stand for all.
    let may_use = |core: &usize| allowed.as_ref().map_or(true, |set| set.is_set(*core));
    for core in (0..CpuSet::MAX_CPU).filter(may_use).take(cores()) {
        mask[core / u64::BITS as usize] |= 1 << (core % u64::BITS as usize);
    }
    mask
}

/// Returns a number that is the same in all processes which share the cores of one machine, and
/// different in others: a hash of its boot and, as containers have quotas of their own, of its host
/// name.
pub fn machine_id() -> u64 {
    let read = |name| std::fs::read(format!("/proc/sys/kernel/{name}"));
    let mut hasher = DefaultHasher::new();
    match (read("random/boot_id"), read("hostname")) {
        (Ok(boot), Ok(host)) => (boot, host).hash(&mut hasher),
        _ => std::process::id().hash(&mut hasher),
    }
    hasher.finish()
}

/// Spawns a thread that does not run on the core of the caller, if the process may use others: for
/// measurements between cores that end before the system moves threads apart.
///
/// **Errors**: those of [`Builder::spawn_scoped`].
pub fn spawn_on_other_core<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let core = sched_getcpu();
    Builder::new().spawn_scoped(scope, move || {
        if let Ok(mut others) = sched_getaffinity(None) {
            others.unset(core);
            // Without another core, the thread stays.
            let _ = sched_setaffinity(None, &others);
        }
        body()
    })
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use super::*;

    /// Returns the number of cores that a thread spawned by `spawn_on_other_core` may use.
    fn other_cores() -> usize {
        let count = || sched_getaffinity(None).unwrap().count() as usize;
        std::thread::scope(|scope| spawn_on_other_core(scope, count).unwrap().join().unwrap())
    }

    #[test]
    fn a_thread_apart_leaves_one_core_to_its_parent() {
        let all = sched_getaffinity(None).unwrap().count() as usize;
        assert_eq!(other_cores(), (all - 1).max(1));
    }

    #[test]
    fn a_pinned_thread_has_the_core_it_is_pinned_to() {
        fn ones(mask: &CoreMask) -> u32 {
            mask.iter().map(|word| word.count_ones()).sum()
        }
        assert_eq!(ones(&core_mask()) as usize, cores());
        let pinned = std::thread::spawn(|| {
            let (mut only, here) = (CpuSet::new(), sched_getcpu());
            only.set(here);
            sched_setaffinity(None, &only).unwrap();
            let mask = core_mask();
            assert_eq!((ones(&mask), mask[here / 64] >> (here % 64)), (1, 1));
        });
        pinned.join().unwrap();
    }

    #[test]
    fn beside_a_pinned_thread_it_stays() {
        let pinned = std::thread::spawn(|| {
            let (mut core, here) = (sched_getaffinity(None).unwrap(), sched_getcpu());
            (0..1024).filter(|core| *core != here).for_each(|other| core.unset(other));
            sched_setaffinity(None, &core).unwrap();
            other_cores()
        });
        assert_eq!(pinned.join().unwrap(), 1);
    }
}
