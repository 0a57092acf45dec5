//! Several ranks in each of several processes, which share memory. The processes are threads, each
//! with a runtime, a device and a rail to the others.
//!
//! Tests of ranks in one process are run again, since the same holds here.

#[path = "../one_sided/atomics.rs"]
mod atomics;
#[path = "../one_sided/bsp_programs.rs"]
mod bsp_programs;
#[path = "../one_sided/collectives.rs"]
mod collectives;
mod common;
#[path = "../one_sided/credits.rs"]
mod credits;
mod distribution;
#[path = "../one_sided/early_puts.rs"]
mod early_puts;
#[path = "../one_sided/halos.rs"]
mod halos;
#[path = "../one_sided/common.rs"]
mod in_one_process;
#[path = "../one_sided/matrix_windows.rs"]
mod matrix_windows;
#[path = "../one_sided/notified_programs.rs"]
mod notified_programs;
#[path = "../one_sided/notified_tasks.rs"]
mod notified_tasks;
#[path = "../processes/outcomes.rs"]
mod outcomes;
#[path = "../one_sided/overlapping_puts.rs"]
mod overlapping_puts;
#[path = "../one_sided/random_programs.rs"]
mod random_programs;
#[path = "../one_sided/sync_modes.rs"]
mod sync_modes;
#[path = "../one_sided/windows_opened_apart.rs"]
mod windows_opened_apart;
