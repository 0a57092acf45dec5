//! Tests of the rules of verbs, one rule in each file.
//!
//! The tests hold in one process, and over the rail that `IBVERBS_SIM_TEST_RAIL` names (`devices`): then the ends of a pair
//! are in two processes. Over a rail these are about one device all the same:
//!
//! - `priced_link`: the times of a model are those of the link within a process.
//! - `limits` and `state_machine`, but for one test of each: no message leaves the device.
//! - the queue pairs that are their own peers, in `opcodes` and `completion_queue_overrun`.

mod atomics;
mod common;
mod completion_channel;
mod completion_queue_overrun;
mod concurrent_posters;
mod deregister;
mod devices;
mod faults;
mod fence;
mod flush_on_error;
mod inline_data;
mod limits;
mod message_length;
mod no_response;
mod opcodes;
mod ordering;
mod priced_link;
mod protection;
mod receiver_not_ready;
mod scatter_gather;
mod send_queue_slots;
mod serial_model;
mod shared_receive_queue;
mod state_machine;
