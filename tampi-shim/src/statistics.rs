//! Counters of a transport.

/// Counters of one rank since the run began, and the operations that are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Messages sent in one cell, copied into it and out of it.
    pub eager: u64,
    /// Messages sent in several cells, copied into them and out of them.
    pub eager_split: u64,
    /// Messages that the sender copied, and that the receiver read from the copy.
    pub lazy: u64,
    /// Messages that the receiver read from the buffer of the sender.
    pub rendezvous: u64,
    /// Messages that the sender wrote to the buffer of a receive that was ready before (RTR).
    pub written: u64,
    /// Messages that arrived before their receive was started.
    pub unexpected: u64,
    /// Sends that went through the retry queue, because the receiver had no room.
    pub queued: u64,
    /// Short messages sent by rendezvous, because the receiver keeps too many unexpected ones
    /// already.
    pub over_quota: u64,
    /// Receives that no message is matched to.
    pub waiting_receives: u64,
    /// Messages that no receive has taken.
    pub waiting_messages: u64,
    /// Operations and control messages under way.
    pub unfinished: u64,
    /// Bytes of the copies of messages under way.
    pub kept_bytes: u64,
}

impl Statistics {
    /// Adds the counters of another part of the rank.
    pub(crate) fn add(&mut self, other: &Statistics) {
        let Statistics {
            eager,
            eager_split,
            lazy,
            rendezvous,
            written,
            unexpected,
            queued,
            over_quota,
            ..
        } = other;
        self.eager += eager;
        self.eager_split += eager_split;
        self.lazy += lazy;
        self.rendezvous += rendezvous;
        self.written += written;
        self.unexpected += unexpected;
        self.queued += queued;
        self.over_quota += over_quota;
    }
}
