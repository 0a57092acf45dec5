//! Models of whole queue pairs: threads may be switched at every step of a post.
#![allow(unsafe_code, reason = "registers memory")]

use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use loom::thread;

use crate::{
    Access, CompletionQueue, CompletionStatus, Connection, Device, DeviceConfig, MemoryRegion,
    Operation, Payload, ProtectionDomain, QueuePair, QueuePairAttributes, QueuePairInit,
    QueuePairState, ReceiveWorkRequest, SendFlags, SendWorkRequest, SharedReceiveQueueInit,
    WorkCompletion,
};

fn model(switches: usize, check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(switches);
    model.max_branches = 100_000;
    model.check(check);
}

struct Pair {
    a: QueuePair,
    b: QueuePair,
    sent: CompletionQueue,
    received: CompletionQueue,
    domain: ProtectionDomain,
}

impl Pair {
    fn register(&self, word: &AtomicU64) -> MemoryRegion {
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        // SAFETY: models use the word as an atomic, and free it after the region.
        unsafe { self.domain.register(NonNull::from(word).cast(), 8, access).unwrap() }
    }
}

fn pair() -> Arc<Pair> {
    let context = Device::new(DeviceConfig::default()).unwrap().open();
    let [sent, received] = [(); 2].map(|()| context.create_completion_queue(4, None).unwrap());
    let domain = context.allocate_protection_domain();
    let init = |cq| QueuePairInit {
        max_send_wr: 4,
        max_recv_wr: 4,
        max_recv_sge: 1,
        signal_all: true,
        ..QueuePairInit::new(cq, cq)
    };
    let [a, b] = [&sent, &received].map(|cq| domain.create_queue_pair(&init(cq)).unwrap());
    let patient = Connection { rnr_retry: 7, ..Connection::default() };
    a.connect(b.number(), &patient).unwrap();
    b.connect(a.number(), &patient).unwrap();
    Arc::new(Pair { a, b, sent, received, domain })
}

const SEND: SendWorkRequest<'static> = SendWorkRequest {
    wr_id: 1,
    operation: Operation::Send,
    payload: Payload::Inline(&[]),
    flags: SendFlags::NONE,
};

const RECEIVE: ReceiveWorkRequest<'static> = ReceiveWorkRequest { wr_id: 2, scatter: &[] };

fn statuses(queue: &CompletionQueue) -> Vec<CompletionStatus> {
    let mut completions = [WorkCompletion::default(); 4];
    let count = queue.poll(&mut completions);
    completions[..count].iter().map(|completion| completion.status).collect()
}

/// The sender lists itself and checks again; the receiver posts and checks for listed senders.
#[test]
fn loom_no_sender_sleeps_on_a_queue_with_a_receive() {
    model(2, || {
        let pair = pair();
        let receiver = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.b.post_receive(&[RECEIVE]).unwrap())
        };
        pair.a.post_send(&[SEND]).unwrap();
        receiver.join().unwrap();
        assert_eq!(statuses(&pair.sent), [CompletionStatus::Success]);
        assert_eq!(statuses(&pair.received), [CompletionStatus::Success]);
    });
}

/// Two senders on a shared queue, and their receives: no sender sleeps while there is a receive.
#[test]
fn loom_no_sender_sleeps_on_a_shared_queue_with_a_receive() {
    model(1, || {
        let context = Device::new(DeviceConfig::default()).unwrap().open();
        let [sent, received] = [(); 2].map(|()| context.create_completion_queue(4, None).unwrap());
        let domain = context.allocate_protection_domain();
        let srq = SharedReceiveQueueInit { max_wr: 2, max_sge: 1 };
        let srq = domain.create_shared_receive_queue(&srq).unwrap();
        let patient = Connection { rnr_retry: 7, ..Connection::default() };
        let ends = Arc::new([(); 2].map(|()| {
            let init = QueuePairInit {
                max_send_wr: 2,
                max_recv_wr: 2,
                max_recv_sge: 1,
                signal_all: true,
                ..QueuePairInit::new(&sent, &received)
            };
            let near = domain.create_queue_pair(&init).unwrap();
            let init = QueuePairInit { srq: Some(srq.clone()), ..init };
            let far = domain.create_queue_pair(&init).unwrap();
            near.connect(far.number(), &patient).unwrap();
            far.connect(near.number(), &patient).unwrap();
            (near, far)
        }));
        let sender = {
            let ends = Arc::clone(&ends);
            thread::spawn(move || ends[0].0.post_send(&[SEND]).unwrap())
        };
        let receiver = thread::spawn(move || {
            for _ in 0..2 {
                srq.post_receive(&[RECEIVE]).unwrap();
            }
        });
        ends[1].0.post_send(&[SEND]).unwrap();
        sender.join().unwrap();
        receiver.join().unwrap();
        assert_eq!(statuses(&sent), [CompletionStatus::Success; 2]);
        assert_eq!(statuses(&received), [CompletionStatus::Success; 2]);
    });
}

/// A peer sends while this end is reset: its request is carried out before the reset or not at all.
#[test]
fn loom_nothing_of_a_peer_arrives_after_a_reset() {
    model(2, || {
        let pair = pair();
        pair.b.post_receive(&[RECEIVE]).unwrap();
        let sender = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.a.post_send(&[SEND]).unwrap())
        };
        pair.b.modify(&QueuePairAttributes::new(QueuePairState::Reset)).unwrap();
        let before = statuses(&pair.received);
        sender.join().unwrap();
        assert_eq!(statuses(&pair.received), []);
        assert_eq!(statuses(&pair.sent).len(), before.len());
    });
}

/// A write to memory that is being deregistered is carried out before or refused.
#[test]
fn loom_nothing_is_written_to_memory_that_is_deregistered() {
    model(2, || {
        let memory = Box::leak(Box::new(AtomicU64::new(0)));
        let pair = pair();
        let region = pair.register(memory);
        let remote = region.at(0);
        let sender = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || {
                let operation = Operation::Write { remote };
                let payload = Payload::Inline(&[1; 8]);
                pair.a.post_send(&[SendWorkRequest { operation, payload, ..SEND }]).unwrap();
            })
        };
        drop(region);
        let before = memory.load(Ordering::SeqCst);
        // The slot is used again.
        let other = Box::leak(Box::new(AtomicU64::new(0)));
        let next = pair.register(other);
        sender.join().unwrap();
        assert_eq!((memory.load(Ordering::SeqCst), other.load(Ordering::SeqCst)), (before, 0));
        let expected =
            if before == 0 { CompletionStatus::RemoteAccess } else { CompletionStatus::Success };
        assert_eq!(statuses(&pair.sent), [expected]);
        drop(next);
        for word in [memory, other] {
            // SAFETY: it was leaked above, and no thread uses it any more.
            drop(unsafe { Box::from_raw(std::ptr::from_mut(word)) });
        }
    });
}

/// A context that is killed while a queue pair is created leaves none that still responds.
#[test]
fn loom_no_queue_pair_of_a_dead_context_is_left_connected() {
    model(2, || {
        let context = Device::new(DeviceConfig::default()).unwrap().open();
        let queue = context.create_completion_queue(4, None).unwrap();
        let domain = context.allocate_protection_domain();
        let killer = thread::spawn(move || context.kill());
        let init = QueuePairInit {
            max_send_wr: 2,
            max_recv_wr: 2,
            max_recv_sge: 1,
            ..QueuePairInit::new(&queue, &queue)
        };
        let queue_pair = domain.create_queue_pair(&init).unwrap();
        killer.join().unwrap();
        assert!(queue_pair.core.state.is_cut_off());
    });
}
