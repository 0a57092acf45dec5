//! Processors of the machine that programs run on.

use std::sync::OnceLock;

use crate::barrier::MOST_PARTIES;

/// Returns the number of cores that this process may use.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Returns the number of processors: `LPF_MAX_PROCS`, or the number of cores.
pub(crate) fn processors() -> u32 {
    static PROCESSORS: OnceLock<u32> = OnceLock::new();
    *PROCESSORS.get_or_init(|| {
        let given = std::env::var("LPF_MAX_PROCS").ok();
        let given = given.and_then(|value| value.trim().parse::<u32>().ok());
        let number = given.filter(|number| *number > 0).unwrap_or(cores() as u32);
        number.min(MOST_PARTIES as u32)
    })
}
