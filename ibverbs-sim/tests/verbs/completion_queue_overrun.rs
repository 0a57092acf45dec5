//! An overrun completion queue fails for good, together with the queue pairs that report to it.

use crate::common::*;
use ibverbs_sim::*;

#[test]
fn the_entry_too_many_fails_the_queue_and_its_queue_pairs() {
    let device = device();
    let (a, b) = (End::new(&device, |_| {}), End::new(&device, |_| {}));
    let channel = CompletionChannel::new();
    let small = b.context.create_completion_queue(2, Some(&channel)).unwrap();
    let create = || {
        let init = QueuePairInit::new(&b.send_cq, &small);
        b.domain.create_queue_pair(&init).unwrap()
    };
    let (peer, bystander) = (create(), create());
    b.site.connect(&peer, &a.queue_pair, &Connection::default());
    a.site.connect(&a.queue_pair, &peer, &Connection::default());
    b.site.connect(&bystander, &bystander, &Connection::default());
    peer.post_receive(&[ReceiveWorkRequest { wr_id: 0, scatter: &[] }; 4]).unwrap();

    a.post(&[send(1), send(2)]);
    small.check().unwrap();
    assert_eq!(peer.state(), QueuePairState::ReadyToSend);
    assert!(!channel.try_notified());
    a.post(&[send(3)]);
    assert_eq!(small.check(), Err(Error::CompletionQueueOverrun { capacity: 2 }));
    assert_eq!(peer.state(), QueuePairState::Error);
    assert_eq!(bystander.state(), QueuePairState::Error);
    let event = AsyncEvent::CompletionQueueOverrun { capacity: 2 };
    assert_eq!(b.context.poll_async_event(), Some(event));
    assert_eq!(b.context.poll_async_event(), None);
    assert!(channel.try_notified(), "whoever waits must learn of it");
    // Completions before the overrun are still there; none comes after them.
    assert_eq!(poll_all(&small).len(), 2);
    bystander.post_receive(&[ReceiveWorkRequest { wr_id: 9, scatter: &[] }]).unwrap();
    assert!(poll_all(&small).is_empty());
}

#[test]
fn a_polled_entry_makes_room() {
    let device = device();
    let a = End::new(&device, |_| {});
    let small = a.context.create_completion_queue(2, None).unwrap();
    let queue_pair = a.domain.create_queue_pair(&QueuePairInit::new(&small, &a.recv_cq)).unwrap();
    queue_pair.connect(queue_pair.number(), &Connection::default()).unwrap();
    let nothing = Operation::Write { remote: RemoteAddress::default() };
    for wr_id in 0..10 {
        queue_pair.post_send(&[request(wr_id, nothing, Payload::Inline(b""))]).unwrap();
        if wr_id > 0 {
            assert_eq!(small.poll(&mut [WorkCompletion::default()]), 1);
        }
    }
    small.check().unwrap();
}
