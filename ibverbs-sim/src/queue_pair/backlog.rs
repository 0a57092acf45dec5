//! Requests waiting in a queue pair: those posted while another thread held the gate, and those
//! that wait for a receive, an answer or time.
//!
//! A request is copied here with its list or its inline bytes. This is the slow path, and the
//! only one that allocates.

use std::collections::VecDeque;

use parking_lot::{Mutex, MutexGuard};

use crate::{Operation, Payload, ScatterGather, SendFlags, SendWorkRequest};

#[derive(Default)]
pub(crate) struct Backlog {
    requests: Mutex<VecDeque<StoredRequest>>,
}

/// A request that owns what it points to.
pub(crate) struct StoredRequest {
    wr_id: u64,
    operation: Operation,
    payload: StoredPayload,
    flags: SendFlags,
}

enum StoredPayload {
    /// The most frequent list needs no box.
    One([ScatterGather; 1]),
    Gather(Box<[ScatterGather]>),
    Inline(Box<[u8]>),
}

impl Backlog {
    /// The lock under which requests and the gate's `BACKLOG` flag change together.
    pub(crate) fn lock(&self) -> MutexGuard<'_, VecDeque<StoredRequest>> {
        self.requests.lock()
    }
}

impl From<&SendWorkRequest<'_>> for StoredRequest {
    fn from(request: &SendWorkRequest<'_>) -> Self {
        let payload = match request.payload {
            Payload::Gather(&[one]) => StoredPayload::One([one]),
            Payload::Gather(list) => StoredPayload::Gather(list.into()),
            Payload::Inline(bytes) => StoredPayload::Inline(bytes.into()),
        };
        let &SendWorkRequest { wr_id, operation, flags, .. } = request;
        Self { wr_id, operation, payload, flags }
    }
}

impl StoredRequest {
    pub(crate) fn as_request(&self) -> SendWorkRequest<'_> {
        let payload = match &self.payload {
            StoredPayload::One(one) => Payload::Gather(one),
            StoredPayload::Gather(list) => Payload::Gather(list),
            StoredPayload::Inline(bytes) => Payload::Inline(bytes),
        };
        SendWorkRequest { wr_id: self.wr_id, operation: self.operation, payload, flags: self.flags }
    }
}
