//! Models of whole queue pairs: every step of a post is one at which threads may be switched.

use std::sync::Arc;

use loom::thread;

use crate::{
    CompletionQueue, CompletionStatus, Connection, Device, DeviceConfig, Operation, Payload,
    QueuePair, QueuePairInit, ReceiveWorkRequest, SendFlags, SendWorkRequest, WorkCompletion,
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
    Arc::new(Pair { a, b, sent, received })
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

/// The sender lists itself and looks once more, the receiver posts and looks for listed ones.
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
