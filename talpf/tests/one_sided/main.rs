//! Ranks that put, get, update and sync, as programs use them: one behaviour a file.

mod atomics;
mod changed_pattern;
mod common;
mod credits;
mod device_faults;
mod early_puts;
mod failures;
mod gets;
mod long_transfers;
mod matrix_windows;
mod missing_operation;
mod operations_in_bodies;
mod outside_window;
mod overlapping_puts;
mod ping_pong;
mod polling;
mod queued_syncs;
mod random_programs;
mod raw_slots;
mod ring;
mod slots;
mod sync_modes;
mod to_itself;
mod undisturbed_readers;
mod unexpected_arrivals;
mod windows_opened_apart;
