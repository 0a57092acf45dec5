//! The machine of a process: its identity, which processes that can pass each other memory files have in
//! common, and its address.

use std::{
    fs,
    hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState},
    net::{IpAddr, UdpSocket},
    os::unix::fs::MetadataExt,
};

/// Address of no machine, by which the usual interface is found. Nothing is sent there.
const NOWHERE: (&str, u16) = ("192.0.2.1", 9);

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

/// Returns the address of the interface with the default route, by which other machines reach this one.
pub(super) fn address() -> IpAddr {
    let towards = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect(NOWHERE)?;
        Ok(socket.local_addr()?.ip())
    });
    // A machine without a way to others has processes of one machine only.
    towards.unwrap_or(IpAddr::from([127, 0, 0, 1]))
}
