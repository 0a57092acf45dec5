//! The state of a queue pair, and its creation, failure and destruction.

use std::{
    num::NonZeroU32,
    sync::{Arc, Weak},
};

use talpf_primitives::{AtomicU8, AtomicU32, AtomicU64, Mutex, Ordering};

use crate::{
    CompletionOpcode, CompletionStatus, Error, QueuePairInit, QueuePairNumber, QueuePairState,
    RailKey, Result, WorkCompletion,
    attributes::{within, within_nonzero},
    completion::CompletionEntry,
    completion_queue::CompletionQueueCore,
    context::ContextCore,
    deferred::Deferred,
    gate::PostLimit,
    protection_domain::DomainCore,
    queue_pair::{
        remote::RemotePeer,
        requester::{Executor, Requester},
        state::StateCell,
        stored_request::StoredRequest,
    },
    receive_queue::ReceiveQueue,
    send_queue::SendQueue,
};
use crossbeam_utils::CachePadded;

pub(crate) struct QueuePairCore {
    pub(crate) number: QueuePairNumber,
    pub(crate) context: Arc<ContextCore>,
    /// Number of the protection domain.
    pub(crate) domain: NonZeroU32,
    pub(crate) limits: Limits,
    pub(crate) send_cq: Arc<CompletionQueueCore>,
    pub(crate) recv_cq: Arc<CompletionQueueCore>,
    pub(crate) receives: Arc<ReceiveQueue>,
    pub(crate) shared_receives: bool,
    pub(crate) state: StateCell,
    /// On cache lines of its own: the peer changes it with every message.
    pub(crate) responder: CachePadded<Responder>,
    pub(crate) sends: CachePadded<SendQueue<Requester, StoredRequest>>,
    /// The freed count as last read; the current one may be larger.
    freed: AtomicU32,
    pub(crate) remote_peer: RemotePeer,
    /// Key by the rail of the device that is open while the peer in another process may use memory
    /// at once. Locked during calls of the rail, which never call a queue pair.
    pub(crate) permit: parking_lot::Mutex<Option<RailKey>>,
    /// Held during a transition.
    pub(crate) control: Mutex<()>,
    pub(crate) this: Weak<Self>,
}

/// Limits that are checked when requests are posted.
pub(crate) struct Limits {
    pub(crate) max_send_wr: u32,
    pub(crate) max_send_sge: usize,
    pub(crate) max_inline_data: usize,
    pub(crate) signal_all: bool,
}

/// The responding half. Changed only by the holder of the peer's gate and by transitions.
#[derive(Default)]
pub(crate) struct Responder {
    pub(crate) remote: AtomicU32,
    pub(crate) expected_psn: AtomicU32,
    pub(crate) access: AtomicU8,
    pub(crate) max_rd_atomic: AtomicU8,
    pub(crate) min_rnr_timer_ns: AtomicU64,
    /// Value that the last atomic found, for a peer that repeats the request.
    pub(crate) last_original: AtomicU64,
}

impl QueuePairCore {
    pub(crate) fn create(domain: &Arc<DomainCore>, init: &QueuePairInit) -> Result<Arc<Self>> {
        let context = &domain.context;
        check_init(domain, init)?;
        let number = context.device.send_slots.allocate()?;
        let receives = match &init.srq {
            Some(srq) => Arc::clone(&srq.receives),
            None => {
                let (max_wr, max_sge) = (init.max_recv_wr, init.max_recv_sge);
                Arc::new(ReceiveQueue::new(max_wr, max_sge, domain.number))
            }
        };
        let core = Arc::new_cyclic(|this| Self {
            number,
            context: Arc::clone(context),
            domain: domain.number,
            limits: Limits {
                max_send_wr: init.max_send_wr,
                max_send_sge: init.max_send_sge as usize,
                max_inline_data: init.max_inline_data as usize,
                signal_all: init.signal_all,
            },
            send_cq: Arc::clone(&init.send_cq.core),
            recv_cq: Arc::clone(&init.recv_cq.core),
            receives,
            shared_receives: init.srq.is_some(),
            state: StateCell::new(),
            responder: CachePadded::default(),
            sends: CachePadded::new(SendQueue::new(Requester::default())),
            freed: AtomicU32::new(0),
            remote_peer: RemotePeer::default(),
            permit: parking_lot::Mutex::new(None),
            control: Mutex::new(()),
            this: Weak::clone(this),
        });
        context.device.insert(&core);
        domain.queue_pairs.add(&core.this);
        if let Some(srq) = init.srq.as_ref().filter(|srq| srq.domain.number != domain.number) {
            // Its receives are in memory of that domain.
            srq.domain.queue_pairs.add(&core.this);
        }
        core.send_cq.queue_pairs.add(&core.this);
        core.recv_cq.queue_pairs.add(&core.this);
        if context.is_killed() {
            core.cut_off();
        }
        Ok(core)
    }

    /// Returns the limit of a post of `wanted` requests.
    #[inline]
    pub(crate) fn post_limit(&self, wanted: u32, all_or_none: bool) -> PostLimit {
        let limit = self.limits.max_send_wr;
        let seen = PostLimit { freed: self.freed.load(Ordering::Relaxed), limit, all_or_none };
        if seen.grant(self.sends.posted(), wanted) == wanted {
            return seen;
        }
        let freed = self.context.device.send_slots.freed(self.number);
        self.freed.store(freed, Ordering::Relaxed);
        PostLimit { freed, limit, all_or_none }
    }

    #[inline]
    pub(crate) fn executor<'a>(&'a self, deferred: &'a mut Deferred) -> Executor<'a> {
        Executor { queue_pair: self, deferred }
    }

    /// Resumes a stalled request, because the event that it waits for may have occurred.
    pub(crate) fn resume(&self, deferred: &mut Deferred) {
        if self.remote_peer.process().is_some() {
            self.resume_remote(false, deferred);
        } else {
            self.sends.resume(self.executor(deferred));
        }
    }

    /// Enters ERROR from any state except RESET, and defers the flush.
    pub(crate) fn enter_error(&self, deferred: &mut Deferred) {
        let from = self.state.load();
        if matches!(from, QueuePairState::Reset | QueuePairState::Error) {
            return;
        }
        if !self.state.change(from, QueuePairState::Error) {
            return self.enter_error(deferred);
        }
        if let Some(this) = self.this.upgrade() {
            deferred.flush(this);
        }
    }

    /// Completes all outstanding requests as flushed, in state ERROR. The caller holds no gate.
    pub(crate) fn flush(&self, deferred: &mut Deferred) {
        if self.state.load() == QueuePairState::Error {
            // The peer touches no memory once the first request was flushed.
            self.close_permit();
        }
        // Excludes a reset in the middle of the flush: requests that were posted after it would be
        // flushed too.
        let _control = self.control.lock();
        if self.state.load() != QueuePairState::Error {
            return;
        }
        self.flush_receives(deferred);
        self.resume(deferred);
        self.sends.drain(self.executor(deferred));
    }

    /// Completes the receives of the queue pair's own queue as flushed.
    fn flush_receives(&self, deferred: &mut Deferred) {
        if self.shared_receives {
            return;
        }
        while let Some(wr_id) = self.receives.take_id() {
            self.complete_receive(
                WorkCompletion {
                    wr_id,
                    status: CompletionStatus::WorkRequestFlushed,
                    opcode: CompletionOpcode::Receive,
                    ..WorkCompletion::default()
                },
                false,
                deferred,
            );
        }
    }

    /// Adds the completion of a receive to the completion queue.
    #[inline]
    pub(crate) fn complete_receive(
        &self,
        completion: WorkCompletion,
        solicited: bool,
        deferred: &mut Deferred,
    ) {
        let source = QueuePairNumber(self.responder.remote.load(Ordering::Relaxed));
        let completion = WorkCompletion { queue_pair: self.number, source, ..completion };
        let entry = CompletionEntry::receive(completion);
        self.recv_cq.push(entry, solicited, completion.status, deferred);
    }

    pub(crate) fn wait_for_holder(&self) {
        self.sends.wait_for_holder();
    }

    /// Waits until the peer's request that is being carried out at the call has ended. Only
    /// requests of the peer are carried out, and the peer changes only after a reset, which calls
    /// this. Returns the peer, to be dropped under no lock.
    pub(crate) fn wait_for_peer(&self) -> Option<Arc<Self>> {
        let peer = QueuePairNumber(self.responder.remote.load(Ordering::SeqCst));
        let peer = self.context.device.find(peer);
        peer.iter().for_each(|peer| peer.wait_for_holder());
        peer
    }

    pub(crate) fn cut_off(&self) {
        self.state.cut_off();
    }

    /// Destroys the queue pair: afterwards nothing is posted to it, and it neither responds nor
    /// keeps its peer alive.
    pub(crate) fn destroy(&self) {
        let mut deferred = Deferred::default();
        let control = self.control.lock();
        self.reset(&mut deferred);
        drop(control);
        self.close_permit();
        deferred.run();
        self.context.device.remove(self.number);
        self.context.device.send_slots.release(self.number);
    }
}

fn check_init(domain: &Arc<DomainCore>, init: &QueuePairInit) -> Result<()> {
    let limits = &domain.context.device.attributes;
    within_nonzero("max_send_wr", init.max_send_wr, limits.max_qp_wr)?;
    within("max_send_sge", init.max_send_sge, limits.max_sge)?;
    within("max_inline_data", init.max_inline_data, limits.max_inline_data)?;
    match &init.srq {
        Some(srq) if !Arc::ptr_eq(&srq.domain.context, &domain.context) => {
            return Err(Error::ForeignObject { what: "srq", owner: "context" });
        }
        Some(_) => {}
        None => {
            within_nonzero("max_recv_wr", init.max_recv_wr, limits.max_qp_wr)?;
            within("max_recv_sge", init.max_recv_sge, limits.max_sge)?;
        }
    }
    for (what, cq) in [("send_cq", &init.send_cq), ("recv_cq", &init.recv_cq)] {
        if !Arc::ptr_eq(&cq.core.context, &domain.context) {
            return Err(Error::ForeignObject { what, owner: "context" });
        }
    }
    Ok(())
}
