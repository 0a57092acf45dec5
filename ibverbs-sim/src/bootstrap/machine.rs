//! The identity of the machine of a process: two processes with the same one can pass each other
//! memory files.

use std::{
    fs,
    hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState},
    os::unix::fs::MetadataExt,
};

/// Returns a number that the processes have in common that this one can share memory with: those of
/// the same user, under the same running kernel, in the same network namespace, by which abstract
/// sockets are found. Host names play no part: containers may have any.
///
/// A process whose kernel has neither to read shares memory with nobody.
pub(super) fn machine() -> u64 {
    let boot = fs::read("/proc/sys/kernel/random/boot_id");
    let network = fs::metadata("/proc/self/ns/net").map(|file| (file.dev(), file.ino()));
    let mut hasher = DefaultHasher::new();
    match (boot, network) {
        (Ok(boot), Ok(network)) => {
            (boot, network, rustix::process::geteuid().as_raw()).hash(&mut hasher);
            hasher.finish()
        }
        _ => random(),
    }
}

/// Returns a number that differs from those of other calls and processes.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
