//! How much memory a run may use.

use std::fs;

use crate::Error;
use crate::run::{Machine, Variant};

/// Bytes that the system can still give this process: the memory the kernel calls available, or
/// what the control group leaves when that is less. `None` where neither can be told.
pub fn available() -> Option<u64> {
    [system(), control_group()].into_iter().flatten().min()
}

/// Checks that the bytes of the `data`, and of what connects the ranks of `variant` on `machine`,
/// are available, so that a run too large ends with an error before it starts rather than with the
/// process killed.
///
/// **Errors**: [`Error::Memory`].
pub fn require(data: u64, variant: Variant, machine: Machine) -> Result<(), Error> {
    let (connections, ranks) = (variant.connections_bytes(machine), machine.ranks());
    let needed = data.saturating_add(connections);
    match available() {
        Some(available) if available < needed => {
            Err(Error::Memory { needed, connections, ranks, available })
        }
        _ => Ok(()),
    }
}

fn system() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

fn control_group() -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}
