//! Tests of queue pairs between processes that libfabric joins, over TCP of this machine. `long_operations` is skipped
//! where it is not installed. The suite of verbs is that of other rails.

#[path = "../wire/atomics.rs"]
mod atomics;
#[path = "../verbs/common/mod.rs"]
mod common;
#[path = "../wire/connected_pair.rs"]
mod connected_pair;
#[path = "../wire/datagrams.rs"]
mod datagrams;
mod devices;
#[path = "../verbs/faults.rs"]
mod faults;
mod long_operations;
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
