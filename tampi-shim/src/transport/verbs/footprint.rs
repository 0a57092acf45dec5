//! Memory footprint of the links between ranks.

/// Length of an entry of a queue in bytes.
const SLOT: u64 = 32;
/// Length of a ring, its queue pairs and their queues in bytes.
const LINK: u64 = 32 << 10;
/// Most doorbells that a rank can receive: a number for each peer would make the memory and the start of a
/// run grow with the square of its ranks.
const MOST_RECEIVES: u32 = 256;

/// Estimates the memory of the links of all ranks, if each exchanges messages with `peers` others.
pub(crate) fn connections_bytes(ranks: u32, peers: u32) -> u64 {
    let doorbells = u64::from(2 * receives(ranks)).next_power_of_two();
    u64::from(ranks) * (2 * doorbells * SLOT + u64::from(peers) * LINK)
}

/// Returns the number of doorbells that a rank can receive before it answers them. Of more, those that
/// find no receive wait at their senders until it does.
pub(super) fn receives(ranks: u32) -> u32 {
    (4 * ranks + 16).min(MOST_RECEIVES)
}
