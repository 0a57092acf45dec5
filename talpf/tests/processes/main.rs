//! Ranks in processes of their own. Here they are threads, each with a runtime, a device and a wire
//! to the others; what they share is what the test watches them by.
//!
//! What holds in one process holds here, so tests of that are run again. Those of failures are
//! not: which of several failures a process reports first depends on the schedule.

#[path = "../one_sided/atomics.rs"]
mod atomics;
#[path = "../one_sided/bsp.rs"]
mod bsp;
#[path = "../one_sided/bsp_programs.rs"]
mod bsp_programs;
#[path = "../one_sided/collectives.rs"]
mod collectives;
mod common;
mod conflicts;
#[path = "../one_sided/credits.rs"]
mod credits;
mod double_buffered_channel;
mod eager_puts;
#[path = "../one_sided/early_puts.rs"]
mod early_puts;
mod end_of_run;
#[path = "../one_sided/failed_registration.rs"]
mod failed_registration;
mod failures;
mod get_and_put;
#[path = "../one_sided/halos.rs"]
mod halos;
#[path = "../one_sided/common.rs"]
mod in_one_process;
#[path = "../one_sided/long_transfers.rs"]
mod long_transfers;
#[path = "../one_sided/matrix_windows.rs"]
mod matrix_windows;
mod meeting;
mod notification_outcomes;
#[path = "../one_sided/notifications.rs"]
mod notifications;
#[path = "../one_sided/notified_programs.rs"]
mod notified_programs;
#[path = "../one_sided/notified_tasks.rs"]
mod notified_tasks;
#[path = "../one_sided/operations_in_bodies.rs"]
mod operations_in_bodies;
mod outcomes;
mod outside_window;
#[path = "../one_sided/overlapping_puts.rs"]
mod overlapping_puts;
mod panicking_wire;
#[path = "../one_sided/queued_syncs.rs"]
mod queued_syncs;
#[path = "../one_sided/random_programs.rs"]
mod random_programs;
#[path = "../one_sided/rectangles.rs"]
mod rectangles;
mod rehook;
mod silent_peers;
mod step_time;
#[path = "../one_sided/sync_modes.rs"]
mod sync_modes;
mod termination;
#[path = "../one_sided/to_itself.rs"]
mod to_itself;
#[path = "../one_sided/undisturbed_readers.rs"]
mod undisturbed_readers;
#[path = "../one_sided/windows_opened_apart.rs"]
mod windows_opened_apart;
