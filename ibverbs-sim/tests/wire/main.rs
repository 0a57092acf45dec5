//! Tests of the rules of verbs between processes: devices joined by a wire, here in one process.

mod atomics;
mod callbacks;
#[path = "../verbs/common/mod.rs"]
mod common;
mod connected_pair;
mod counting_allocator;
mod datagrams;
mod devices;
mod forged_packets;
mod forger;
mod hostile_peers;
mod lost_process;
mod opcodes;
mod outstanding;
mod protection;
mod receiver_not_ready;
mod same_as_in_process;
mod sockets;
mod tcp;
