//! Requests stored in the retry queue of a queue pair: those posted while another thread held the
//! gate, and those that wait for a receive, a response or a deadline.
//!
//! A request is stored with a copy of its list or its inline bytes. This is the slow path, and the
//! only one that allocates.

use crate::{Operation, Payload, ScatterGather, SendFlags, SendWorkRequest, send_queue::Stored};

/// A request that owns its list or its inline bytes.
pub(crate) struct StoredRequest {
    wr_id: u64,
    operation: Operation,
    payload: StoredPayload,
    flags: SendFlags,
}

enum StoredPayload {
    /// The most frequent list, which needs no box.
    One([ScatterGather; 1]),
    Gather(Box<[ScatterGather]>),
    Inline(Box<[u8]>),
}

impl Stored for StoredRequest {
    type Request<'a> = SendWorkRequest<'a>;

    fn store(request: &SendWorkRequest<'_>) -> Self {
        let payload = match request.payload {
            Payload::Gather(&[one]) => StoredPayload::One([one]),
            Payload::Gather(list) => StoredPayload::Gather(list.into()),
            Payload::Inline(bytes) => StoredPayload::Inline(bytes.into()),
        };
        let &SendWorkRequest { wr_id, operation, flags, .. } = request;
        Self { wr_id, operation, payload, flags }
    }

    fn as_request(&self) -> SendWorkRequest<'_> {
        let payload = match &self.payload {
            StoredPayload::One(one) => Payload::Gather(one),
            StoredPayload::Gather(list) => Payload::Gather(list),
            StoredPayload::Inline(bytes) => Payload::Inline(bytes),
        };
        SendWorkRequest { wr_id: self.wr_id, operation: self.operation, payload, flags: self.flags }
    }
}
