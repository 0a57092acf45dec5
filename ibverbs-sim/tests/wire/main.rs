//! Tests of the rules of verbs between processes: devices joined by a wire, here in one process.

mod atomics;
mod callbacks;
#[path = "../verbs/common/mod.rs"]
mod common;
mod connected_pair;
mod counting_allocator;
mod datagrams;
mod devices;
#[path = "../verbs/faults.rs"]
mod faults;
mod forged_packets;
mod forger;
mod hostile_peers;
mod lost_process;
mod opcodes;
mod outstanding;
mod pipelined_faults;
mod protection;
mod receiver_not_ready;
mod same_as_in_process;
#[path = "../verbs/serial_model.rs"]
mod serial_model;
mod sockets;
mod tcp;
