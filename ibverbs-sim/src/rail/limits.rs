//! Limits of rails.

/// Limits of the operations of a rail, and what they need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RailLimits {
    /// Most bytes of a message.
    pub eager_bytes: usize,
    /// Bytes of a notice that arrive: 0, 4 or 8.
    pub notice_bytes: u8,
    /// `true` if writes and reads need the processor of the peer, which has to poll.
    pub needs_peer_processor: bool,
    /// `true` if memory of peers can be mapped, so that the processors of both may use it at once.
    pub is_mapped: bool,
    /// Bytes from which on [`Rail::write_long`](super::Rail::write_long) and
    /// [`Rail::read_long`](super::Rail::read_long) are faster than messages; `None` if they carry nothing out.
    pub long_bytes: Option<usize>,
    /// `true` if [`Rail::arm`](super::Rail::arm) returns an object to sleep on, unless something waits
    /// for room that nothing announces.
    pub has_event: bool,
}
