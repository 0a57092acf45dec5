//! How much memory ranks need for what connects them.

/// Bytes of a slot in a queue.
const SLOT: u64 = 32;
/// Bytes of a ring, its queue pairs and their queues.
const LINK: u64 = 32 << 10;

/// Bytes of what ranks have that exchange messages with so many peers each, about.
pub(crate) fn connections_bytes(ranks: u32, peers: u32) -> u64 {
    let bells = u64::from(2 * receives(ranks)).next_power_of_two();
    u64::from(ranks) * (2 * bells * SLOT + u64::from(peers) * LINK)
}

/// Bells that a rank can take in before it answers them.
pub(super) fn receives(ranks: u32) -> u32 {
    4 * ranks + 16
}
