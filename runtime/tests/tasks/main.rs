//! Tasks, as programs use them: one behaviour a file.

mod array_lifetime;
mod async_bodies;
mod bad_accesses;
mod body_drop;
mod common;
mod concurrency;
mod concurrent_spawners;
mod dependency_order;
mod failure_chains;
mod failures;
mod groups;
mod guard_release;
mod hang_false_alarms;
mod hang_report;
mod idle_policies;
mod inline_tasks;
mod many_accesses;
mod parked_workers;
mod pending_events;
mod priorities;
mod serial_order;
mod shutdown;
mod size_limits;
mod time;
