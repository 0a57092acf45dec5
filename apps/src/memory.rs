//! Memory that a run may use.

use std::fs;

use crate::Error;
use crate::run::{Machine, Variant};

/// Returns the bytes that the system can still give this process: the memory that the kernel
/// reports as available, or the rest of the control group's limit if that is less. `None` if
/// neither is known.
pub fn available() -> Option<u64> {
    [system(), control_group()].into_iter().flatten().min()
}

/// Checks that the bytes of the `data`, and of the connections between the ranks of `variant` on
/// `machine` and of their live tasks, are available. A run that is too large thus fails with an error before
/// it starts, and the system does not kill the process.
///
/// **Errors**: [`Error::Memory`]; an invalid setting in the environment.
pub fn require(data: u64, variant: Variant, machine: Machine) -> Result<(), Error> {
    let (connections, ranks) = (variant.connections_bytes(machine), machine.ranks());
    let tasks = variant.live_task_bytes(machine)?;
    let needed = data.saturating_add(connections).saturating_add(tasks);
    match available() {
        Some(available) if available < needed => {
            Err(Error::Memory { needed, connections, tasks, ranks, available })
        }
        _ => Ok(()),
    }
}

/// Allocates zeros whose pages are not touched, and so take address space alone until they are.
pub(crate) fn untouched(count: usize) -> Vec<f64> {
    vec![0.0; count]
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
