//! Tests of the rules of verbs, one rule in each file.

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
