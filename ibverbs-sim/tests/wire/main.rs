//! The rules of the verbs between processes: devices joined by a wire, here in one process.

mod allocated;
mod atomics;
mod calls_back;
#[path = "../verbs/common/mod.rs"]
mod common;
mod datagrams;
mod forged_packets;
mod forger;
mod hostile_peers;
mod lost_process;
mod opcodes;
mod protection;
mod receiver_not_ready;
mod same_as_in_process;
mod sockets;
mod two;
