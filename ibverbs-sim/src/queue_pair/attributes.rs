//! What a queue pair is made with and connected by.

use crate::{
    Access, CompletionQueue, QueuePairNumber, QueuePairState, SharedReceiveQueue,
    queue_pair::retry::RETRY_FOR_EVER,
};

/// How to make a [`QueuePair`](crate::QueuePair).
#[derive(Clone, Debug)]
pub struct QueuePairInit {
    /// Where its send requests complete.
    pub send_cq: CompletionQueue,
    /// Where its receives complete.
    pub recv_cq: CompletionQueue,
    /// Where its receives come from; `None` for a receive queue of its own.
    pub srq: Option<SharedReceiveQueue>,
    /// Send requests outstanding at one time.
    pub max_send_wr: u32,
    /// Receives outstanding at one time, without a shared queue.
    pub max_recv_wr: u32,
    /// Entries of one gather list.
    pub max_send_sge: u32,
    /// Entries of one scatter list, without a shared queue.
    pub max_recv_sge: u32,
    /// Bytes of one inline payload.
    pub max_inline_data: u32,
    /// Every send request leaves a completion, signalled or not.
    pub signal_all: bool,
}

impl QueuePairInit {
    /// A queue pair of moderate size that reports to these two queues.
    pub fn new(send_cq: &CompletionQueue, recv_cq: &CompletionQueue) -> Self {
        Self {
            send_cq: send_cq.clone(),
            recv_cq: recv_cq.clone(),
            srq: None,
            max_send_wr: 128,
            max_recv_wr: 128,
            max_send_sge: 4,
            max_recv_sge: 4,
            max_inline_data: 64,
            signal_all: false,
        }
    }
}

/// A state to go to, with what the transition needs. See [`QueuePair::modify`].
///
/// [`QueuePair::modify`]: crate::QueuePair::modify
#[derive(Clone, Debug)]
pub struct QueuePairAttributes {
    /// Where to go.
    pub state: QueuePairState,
    /// INIT: the port, 1.
    pub port: Option<u8>,
    /// INIT, later optional: what the peer may do with this end's memory.
    pub access: Option<Access>,
    /// READY TO RECEIVE: the peer.
    pub remote: Option<QueuePairNumber>,
    /// READY TO RECEIVE, optional: the process of the peer on the device's wire. `None` for this
    /// one.
    pub remote_process: Option<u32>,
    /// READY TO RECEIVE: the sequence number of the first message, the peer's `send_psn`.
    pub receive_psn: Option<u32>,
    /// READY TO RECEIVE: READs and atomics of the peer outstanding here; 0 refuses them.
    pub max_dest_rd_atomic: Option<u8>,
    /// READY TO RECEIVE, later optional: how long a peer that found no receive should wait.
    pub min_rnr_timer_ns: Option<u64>,
    /// READY TO SEND: the sequence number of the first message. 24 bits count.
    pub send_psn: Option<u32>,
    /// READY TO SEND: how long to wait for an answer; 0 for ever.
    pub timeout_ns: Option<u64>,
    /// READY TO SEND: retries after no answer, at most 7.
    pub retry_count: Option<u8>,
    /// READY TO SEND: retries after no receive, at most 7; 7 for ever.
    pub rnr_retry: Option<u8>,
    /// READY TO SEND: READs and atomics outstanding at the peer; 0 for none at all.
    pub max_rd_atomic: Option<u8>,
}

impl QueuePairAttributes {
    /// Nothing but a state.
    pub fn new(state: QueuePairState) -> Self {
        Self {
            state,
            port: None,
            access: None,
            remote: None,
            remote_process: None,
            receive_psn: None,
            max_dest_rd_atomic: None,
            min_rnr_timer_ns: None,
            send_psn: None,
            timeout_ns: None,
            retry_count: None,
            rnr_retry: None,
            max_rd_atomic: None,
        }
    }
}

/// Everything that [`QueuePair::connect`](crate::QueuePair::connect) needs beside the peer.
#[derive(Clone, Debug)]
pub struct Connection {
    /// What the peer may do with this end's memory.
    pub access: Access,
    /// First sequence number of both directions.
    pub psn: u32,
    /// READs and atomics outstanding, in both directions.
    pub max_rd_atomic: u8,
    /// How long a peer that found no receive should wait.
    pub min_rnr_timer_ns: u64,
    /// How long to wait for an answer; 0 for ever.
    pub timeout_ns: u64,
    /// Retries after no answer, at most 7.
    pub retry_count: u8,
    /// Retries after no receive, at most 7; 7 for ever.
    pub rnr_retry: u8,
}

impl Default for Connection {
    /// All rights, patient: no receive is waited for, no answer is an error after half a second.
    fn default() -> Self {
        Self {
            access: Access::ALL,
            psn: 0,
            max_rd_atomic: 16,
            min_rnr_timer_ns: 640_000,
            timeout_ns: 67_000_000,
            retry_count: 7,
            rnr_retry: RETRY_FOR_EVER,
        }
    }
}
