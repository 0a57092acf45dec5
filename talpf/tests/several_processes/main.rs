//! Ranks in several processes. Here they are threads, each with a runtime, a device and a rail to the
//! others.
//!
//! Tests of ranks in one process are run again, since the same holds here. Those in `any_rail` and
//! `each_alone` hold over every rail: over sockets, and over the one that `TALPF_TEST_RAIL` names.
//! All others are of one rail.

mod any_rail;
mod changed_wire;
mod common;
mod counting_rail;
mod distribution;
mod each_alone;
mod eager_atomics;
mod end_of_run;
#[path = "../one_sided/failed_registration.rs"]
mod failed_registration;
#[path = "../one_sided/common.rs"]
mod in_one_process;
mod killed;
mod last_messages;
mod late_failure;
mod meeting;
mod panicking_wire;
mod progress_thread;
mod puts_together;
#[path = "../one_sided/queued_syncs.rs"]
mod queued_syncs;
mod rails;
mod raw_numbers;
#[path = "../one_sided/rectangles.rs"]
mod rectangles;
mod rehook;
mod relay;
mod segments;
mod silent_peers;
mod sleeps;
mod slow_link;
#[path = "../one_sided/to_itself.rs"]
mod to_itself;
mod traces;
#[path = "../one_sided/undisturbed_readers.rs"]
mod undisturbed_readers;
