//! Ranks in processes of their own, which share memory. Here they are threads, each with a runtime,
//! a device and a rail to the others.
//!
//! Tests of ranks in one process, and over a wire, are run again, since the same holds here.

#[path = "../one_sided/atomics.rs"]
mod atomics;
#[path = "../one_sided/bsp.rs"]
mod bsp;
#[path = "../one_sided/bsp_programs.rs"]
mod bsp_programs;
#[path = "../one_sided/collectives.rs"]
mod collectives;
mod common;
#[path = "../processes/conflicts.rs"]
mod conflicts;
#[path = "../one_sided/credits.rs"]
mod credits;
#[path = "../processes/double_buffered_channel.rs"]
mod double_buffered_channel;
#[path = "../processes/eager_puts.rs"]
mod eager_puts;
#[path = "../one_sided/early_puts.rs"]
mod early_puts;
#[path = "../processes/failures.rs"]
mod failures;
#[path = "../processes/get_and_put.rs"]
mod get_and_put;
#[path = "../one_sided/halos.rs"]
mod halos;
#[path = "../one_sided/common.rs"]
mod in_one_process;
#[path = "../one_sided/long_transfers.rs"]
mod long_transfers;
#[path = "../one_sided/matrix_windows.rs"]
mod matrix_windows;
#[path = "../processes/notification_outcomes.rs"]
mod notification_outcomes;
#[path = "../one_sided/notifications.rs"]
mod notifications;
#[path = "../one_sided/notified_programs.rs"]
mod notified_programs;
#[path = "../one_sided/notified_tasks.rs"]
mod notified_tasks;
#[path = "../one_sided/operations_in_bodies.rs"]
mod operations_in_bodies;
#[path = "../processes/outcomes.rs"]
mod outcomes;
#[path = "../processes/outside_window.rs"]
mod outside_window;
#[path = "../one_sided/overlapping_puts.rs"]
mod overlapping_puts;
#[path = "../one_sided/random_programs.rs"]
mod random_programs;
mod segments;
#[path = "../processes/step_time.rs"]
mod step_time;
#[path = "../one_sided/sync_modes.rs"]
mod sync_modes;
#[path = "../processes/termination.rs"]
mod termination;
#[path = "../one_sided/windows_opened_apart.rs"]
mod windows_opened_apart;
