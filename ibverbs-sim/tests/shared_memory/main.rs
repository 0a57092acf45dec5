//! Tests of the rules of verbs between processes that share memory: those of processes that a wire
//! joins, run again.

mod at_once;
#[path = "../wire/atomics.rs"]
mod atomics;
#[path = "../verbs/common/mod.rs"]
mod common;
#[path = "../wire/connected_pair.rs"]
mod connected_pair;
#[path = "../wire/counting_allocator.rs"]
mod counting_allocator;
#[path = "../wire/datagrams.rs"]
mod datagrams;
mod devices;
#[path = "../verbs/faults.rs"]
mod faults;
mod no_allocation;
#[path = "../wire/opcodes.rs"]
mod opcodes;
#[path = "../wire/outstanding.rs"]
mod outstanding;
#[path = "../wire/pipelined_faults.rs"]
mod pipelined_faults;
#[path = "../wire/protection.rs"]
mod protection;
#[path = "../wire/receiver_not_ready.rs"]
mod receiver_not_ready;
#[path = "../wire/same_as_in_process.rs"]
mod same_as_in_process;
#[path = "../verbs/serial_model.rs"]
mod serial_model;
