//! Tests that hold over every rail, if each process has one rank.

#[path = "../one_sided/bsp.rs"]
mod bsp;
#[path = "conflicts.rs"]
mod conflicts;
#[path = "double_buffered_channel.rs"]
mod double_buffered_channel;
#[path = "eager_puts.rs"]
mod eager_puts;
#[path = "early_atomics.rs"]
mod early_atomics;
#[path = "failures.rs"]
mod failures;
#[path = "get_and_put.rs"]
mod get_and_put;
#[path = "../one_sided/long_transfers.rs"]
mod long_transfers;
#[path = "notification_outcomes.rs"]
mod notification_outcomes;
#[path = "../one_sided/notifications.rs"]
mod notifications;
#[path = "../one_sided/operations_in_bodies.rs"]
mod operations_in_bodies;
#[path = "outside_window.rs"]
mod outside_window;
#[path = "step_time.rs"]
mod step_time;
#[path = "termination.rs"]
mod termination;
#[path = "tickets.rs"]
mod tickets;
