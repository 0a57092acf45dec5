//! Tests that hold over every rail, with one rank or several in each process.

#[path = "../one_sided/atomics.rs"]
mod atomics;
#[path = "../one_sided/bsp_programs.rs"]
mod bsp_programs;
#[path = "../one_sided/collectives.rs"]
mod collectives;
#[path = "../one_sided/credits.rs"]
mod credits;
#[path = "../one_sided/device_faults.rs"]
mod device_faults;
#[path = "../one_sided/early_puts.rs"]
mod early_puts;
#[path = "../one_sided/halos.rs"]
mod halos;
#[path = "../one_sided/matrix_windows.rs"]
mod matrix_windows;
#[path = "../one_sided/multicasts.rs"]
mod multicasts;
#[path = "../one_sided/names.rs"]
mod names;
#[path = "../one_sided/notified_programs.rs"]
mod notified_programs;
#[path = "../one_sided/notified_tasks.rs"]
mod notified_tasks;
#[path = "../one_sided/overlapping_puts.rs"]
mod overlapping_puts;
#[path = "../one_sided/phasers.rs"]
mod phasers;
#[path = "../one_sided/queue_errors.rs"]
mod queue_errors;
#[path = "../one_sided/queue_programs.rs"]
mod queue_programs;
#[path = "../one_sided/queues.rs"]
mod queues;
#[path = "../one_sided/random_programs.rs"]
mod random_programs;
#[path = "../one_sided/remote_calls.rs"]
mod remote_calls;
#[path = "../one_sided/repeated_puts.rs"]
mod repeated_puts;
#[path = "../one_sided/sampled_values.rs"]
mod sampled_values;
#[path = "../one_sided/short_puts_together.rs"]
mod short_puts_together;
#[path = "../one_sided/sync_modes.rs"]
mod sync_modes;
#[path = "../one_sided/windows_opened_apart.rs"]
mod windows_opened_apart;
