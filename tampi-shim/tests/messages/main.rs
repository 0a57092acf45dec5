//! Messages between the ranks of one process. One behaviour a file; each program is a function
//! over a communicator, so that it runs on any transport.

mod common;

mod arguments;
mod blocking;
mod both_directions;
mod bound_to_tasks;
mod bursts;
mod cancellation;
mod device_faults;
mod failed_buffers;
mod floods;
mod left_over;
mod many_ranks;
mod matrix_regions;
mod order;
mod peer_failure;
mod probes;
mod protocols;
#[path = "../support/requested_time.rs"]
mod requested_time;
mod shared_cells;
mod sizes;
mod truncation;
mod virtual_time;
mod wakers;
mod worker_sets;
