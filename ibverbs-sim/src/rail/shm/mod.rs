//! The rail between processes of one machine, through memory that they share.
//!
//! Each process has one memory file without a name, which it passes to the others over a socket as
//! they join. In it lie a ring from each peer, the keys of what the process has registered, words by
//! which peers announce that they use its memory, and its [segments](ShmSegment).
//!
//! - A message is a frame of a ring.
//! - A write checks its claim in the key table of the owner, stores into the segment, and then leaves
//!   its notice in the ring. A read does the same the other way. Memory that is no segment is copied
//!   by the kernel where it lets this process, which a probe finds out; else by messages.
//! - Deregistering closes the key, and waits for the uses under way (`words`).
//! - A process that is about to sleep says so in its file; who has sent it a frame then wakes it
//!   by an event descriptor. It sleeps on that, and on the sockets, whose end shows that a peer has
//!   ended, however it did.
//!
//! **Threads**: one at a time polls, and reads all rings. Each ring to a peer has a lock for its
//! writers. Deliberately absent: rings that several processes write, which machines of very many
//! processes would need.

mod fence;
mod handshake;
mod join;
mod keys;
mod layout;
mod local;
mod mapping;
mod peer;
mod process_memory;
mod rail;
mod ring;
mod segment;
mod words;

pub use self::rail::{ShmConfig, ShmRail};
pub use self::segment::ShmSegment;

#[cfg(all(test, not(talpf_loom), not(miri)))]
mod tests;
