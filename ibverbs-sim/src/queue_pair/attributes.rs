//! Parameters of queue pairs: for their creation, their transitions and their connection.

use crate::{
    Access, CompletionQueue, QueuePairNumber, QueuePairState, SharedReceiveQueue,
    queue_pair::retry::RETRY_FOR_EVER,
};

/// Parameters for the creation of a [`QueuePair`](crate::QueuePair).
#[derive(Clone, Debug)]
pub struct QueuePairInit {
    /// Completion queue of send requests.
    pub send_cq: CompletionQueue,
    /// Completion queue of receives.
    pub recv_cq: CompletionQueue,
    /// Shared receive queue to take receives from; `None` for a receive queue of its own.
    pub srq: Option<SharedReceiveQueue>,
    /// Most send requests outstanding at one time.
    pub max_send_wr: u32,
    /// Most receives outstanding at one time, without a shared queue.
    pub max_recv_wr: u32,
    /// Most entries of one gather list.
    pub max_send_sge: u32,
    /// Most entries of one scatter list, without a shared queue.
    pub max_recv_sge: u32,
    /// Most bytes of one inline payload.
    pub max_inline_data: u32,
    /// `true` if every send request leaves a completion, signalled or not.
    pub signal_all: bool,
}

impl QueuePairInit {
    /// Makes the parameters of a queue pair of moderate size that reports to these two queues.
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

/// A target state with the attributes that the transition needs. See [`QueuePair::modify`].
///
/// [`QueuePair::modify`]: crate::QueuePair::modify
#[derive(Clone, Debug)]
pub struct QueuePairAttributes {
    /// The target state.
    pub state: QueuePairState,
    /// INIT: the port, 1.
    pub port: Option<u8>,
    /// INIT, later optional: the peer's access rights to memory of this end.
    pub access: Option<Access>,
    /// READY TO RECEIVE: the peer.
    pub remote: Option<QueuePairNumber>,
    /// READY TO RECEIVE, optional: the peer's process on the device's wire; `None` for this
    /// process.
    pub remote_process: Option<u32>,
    /// READY TO RECEIVE: the sequence number of the first message, the peer's `send_psn`.
    pub receive_psn: Option<u32>,
    /// READY TO RECEIVE: most READs and atomics of the peer outstanding here; 0 refuses them.
    pub max_dest_rd_atomic: Option<u8>,
    /// READY TO RECEIVE, later optional: time that a peer should wait if it found no receive.
    pub min_rnr_timer_ns: Option<u64>,
    /// READY TO SEND: the sequence number of the first message. 24 bits count.
    pub send_psn: Option<u32>,
    /// READY TO SEND: time to wait for a response; 0 for no limit.
    pub timeout_ns: Option<u64>,
    /// READY TO SEND: retries after no response, at most 7.
    pub retry_count: Option<u8>,
    /// READY TO SEND: retries after no receive, at most 7; 7 for no limit.
    pub rnr_retry: Option<u8>,
    /// READY TO SEND: most READs and atomics outstanding at the peer; 0 refuses them.
    pub max_rd_atomic: Option<u8>,
}

impl QueuePairAttributes {
    /// Makes attributes with a target state only.
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

/// Parameters of [`QueuePair::connect`](crate::QueuePair::connect) beside the peer.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The peer's access rights to memory of this end.
    pub access: Access,
    /// First sequence number of both directions.
    pub psn: u32,
    /// Most READs and atomics outstanding, in both directions.
    pub max_rd_atomic: u8,
    /// Time that a peer should wait if it found no receive.
    pub min_rnr_timer_ns: u64,
    /// Time to wait for a response; 0 for no limit.
    pub timeout_ns: u64,
    /// Retries after no response, at most 7.
    pub retry_count: u8,
    /// Retries after no receive, at most 7; 7 for no limit.
    pub rnr_retry: u8,
}

impl Default for Connection {
    /// Returns parameters with all rights, unlimited retries after no receive, and an error after
    /// half a second without a response.
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
