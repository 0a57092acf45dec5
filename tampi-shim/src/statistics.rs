//! What a transport has done.

/// Counts of one rank since the run began, and what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Messages sent in one cell: copied into it and out of it.
    pub eager: u64,
    /// Messages sent in several cells: copied into them and out of them.
    pub eager_split: u64,
    /// Messages copied by the sender, which went on, and read from that copy.
    pub lazy: u64,
    /// Messages read from the sender's buffer.
    pub rendezvous: u64,
    /// Messages written to a buffer that the receiver had offered.
    pub written: u64,
    /// Messages that arrived before their receive.
    pub unexpected: u64,
    /// Sends that had to wait for room at the receiver.
    pub staged: u64,
    /// Short messages announced instead of sent, because the receiver keeps too many already.
    pub over_quota: u64,
    /// Receives that no message was matched to.
    pub waiting_receives: u64,
    /// Messages that no receive took.
    pub waiting_messages: u64,
    /// Operations and notices under way.
    pub unfinished: u64,
    /// Bytes of copies of messages under way.
    pub kept_bytes: u64,
}

impl Statistics {
    /// Adds the counts of another part of the rank.
    pub(crate) fn add(&mut self, other: &Statistics) {
        let Statistics {
            eager,
            eager_split,
            lazy,
            rendezvous,
            written,
            unexpected,
            staged,
            over_quota,
            ..
        } = other;
        self.eager += eager;
        self.eager_split += eager_split;
        self.lazy += lazy;
        self.rendezvous += rendezvous;
        self.written += written;
        self.unexpected += unexpected;
        self.staged += staged;
        self.over_quota += over_quota;
    }
}
