//! Capacities of the queues of a rank, and the memory that they need.

use super::send_completions::room_for;

/// Receives kept posted by all ranks of a process together, as far as the bounds of each allow: each
/// arrival takes the next one, so all of them pass through the caches.
const RECEIVES: u32 = 32 * 1024;
/// Largest number of receives that a rank keeps posted, for all peers together.
const MOST_RECEIVES: u32 = 1024;
/// Smallest number of them. A request that finds none waits at its poster until one is posted again.
const FEWEST_RECEIVES: u32 = 256;
/// Number of receives posted at once.
pub(crate) const POST_BATCH: usize = 8;
/// Capacity of the send queues of a rank together, as far as the bounds of each allow.
const SENDS: u32 = 16 * 1024;
/// Largest capacity of a send queue.
const MOST_SENDS: u32 = 1024;
/// Number of unsignalled requests after which one is signalled, so that send slots are freed.
pub(crate) const SIGNAL_EVERY: u32 = 64;
/// Smallest capacity of a send queue: a signalled chain finds room behind unsignalled chains and
/// parts of long operations.
pub(crate) const FEWEST_SENDS: u32 = 4 * SIGNAL_EVERY;
/// Payloads of up to this many bytes are copied when they are posted.
pub(crate) const INLINE_BYTES: usize = 256;

/// As [`INLINE_BYTES`], in a run of several processes: those of a put travel with its claim.
pub(crate) const INLINE_BYTES_BETWEEN_PROCESSES: u32 = 4096;

/// Returns the number of bytes that are copied as they are posted, where `here` of all `ranks` are
/// in this process and the device copies `most`.
pub(super) fn inline_bytes(here: u32, ranks: u32, most: u32) -> u32 {
    if here < ranks { INLINE_BYTES_BETWEEN_PROCESSES.min(most) } else { INLINE_BYTES as u32 }
}

/// Returns the capacity of a send queue in a run of `ranks`: its memory is needed for each peer that
/// a rank communicates with.
pub(super) fn sends(ranks: u32) -> u32 {
    (SENDS / ranks.max(1)).clamp(FEWEST_SENDS, MOST_SENDS)
}

/// Returns the number of receives that a rank keeps posted where `here` ranks share the caches.
pub(super) fn receives(here: u32) -> u32 {
    (RECEIVES / here.max(1)).clamp(FEWEST_RECEIVES, MOST_RECEIVES)
}

/// Estimates the bytes of the endpoints of `ranks` in one process, if each communicates with `peers`
/// of them, itself too.
pub(crate) fn bytes(ranks: u32, peers: u32) -> u64 {
    /// Bytes of a slot in a queue.
    const SLOT: u64 = 32;
    /// Bytes of a queue pair and other state for each connected peer.
    const PEER: u64 = 2048;
    /// Bytes for each rank that could be a peer.
    const CELL: u64 = 16;
    let sent = u64::from(sends(ranks)) * u64::from(room_for(peers).min(ranks));
    let arrived = u64::from(4 * receives(ranks));
    let connected = u64::from(peers) * PEER + u64::from(ranks) * CELL;
    u64::from(ranks) * ((sent + arrived) * SLOT + connected)
}
