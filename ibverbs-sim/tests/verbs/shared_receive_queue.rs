//! Queue pairs with a shared receive queue take from it in the order of arrival.

use crate::common::*;
use ibverbs_sim::*;

struct Shared {
    srq: SharedReceiveQueue,
    owner: End,
    queue_pairs: Vec<QueuePair>,
    senders: Vec<End>,
}

fn shared(senders: usize, max_wr: u32) -> Shared {
    let device = device();
    let owner = End::new(&device, |_| {});
    let init = SharedReceiveQueueInit { max_wr, max_sge: 2 };
    let srq = owner.domain.create_shared_receive_queue(&init).unwrap();
    let senders: Vec<_> = (0..senders).map(|_| End::new(&device, |_| {})).collect();
    let connect = |sender: &End| {
        let init = QueuePairInit {
            srq: Some(srq.clone()),
            ..QueuePairInit::new(&owner.send_cq, &owner.recv_cq)
        };
        let queue_pair = owner.domain.create_queue_pair(&init).unwrap();
        sender.site.connect(&sender.queue_pair, &queue_pair, &Connection::default());
        owner.site.connect(&queue_pair, &sender.queue_pair, &Connection::default());
        queue_pair
    };
    let queue_pairs = senders.iter().map(connect).collect();
    Shared { srq, owner, queue_pairs, senders }
}

#[test]
fn receives_go_to_whoever_comes_first() {
    let Shared { srq, owner, queue_pairs, senders } = shared(3, 8);
    let receives: Vec<_> = (0..6).map(|wr_id| ReceiveWorkRequest { wr_id, scatter: &[] }).collect();
    srq.post_receive(&receives).unwrap();
    for which in [2, 0, 0, 1, 2, 1] {
        senders[which].post(&[send(0)]);
    }
    let expected: Vec<_> =
        [2, 0, 0, 1, 2, 1].iter().map(|&which| queue_pairs[which].number()).collect();
    let received = owner.received();
    assert!(received.iter().map(|got| got.wr_id).eq(0..6));
    assert!(received.iter().map(|got| got.queue_pair).eq(expected));
}

#[test]
fn one_posted_receive_resumes_one_of_the_stalled_senders_after_another() {
    let Shared { srq, owner, senders, queue_pairs: _kept } = shared(3, 8);
    for sender in &senders {
        sender.post(&[send(1), send(2)]);
    }
    for wr_id in 0..6 {
        assert_eq!(owner.received().len(), usize::from(wr_id > 0));
        srq.post_receive(&[ReceiveWorkRequest { wr_id, scatter: &[] }]).unwrap();
    }
    assert_eq!(owner.received().len(), 1);
    for sender in &senders {
        let success = CompletionStatus::Success;
        assert_eq!(statuses(&sender.sent()), [(1, success), (2, success)]);
    }
}

#[test]
fn a_failed_queue_pair_leaves_the_receives_to_the_others() {
    let Shared { srq, owner, queue_pairs, senders } = shared(2, 4);
    let receive = ReceiveWorkRequest { wr_id: 9, scatter: &[] };
    srq.post_receive(&[receive; 3]).unwrap();
    queue_pairs[0].modify(&QueuePairAttributes::new(QueuePairState::Error)).unwrap();
    assert!(owner.received().is_empty());
    senders[1].post(&[send(0), send(1), send(2)]);
    assert_eq!(owner.received().len(), 3);
}

#[test]
fn it_is_bounded_and_takes_the_place_of_a_receive_queue() {
    let Shared { srq, owner: _owner, queue_pairs, senders: _senders } = shared(1, 4);
    let receive = ReceiveWorkRequest { wr_id: 0, scatter: &[] };
    assert_eq!(srq.capacity(), 4);
    assert_eq!(
        srq.post_receive(&[receive; 5]),
        Err(PostError { index: 4, reason: Error::QueueFull { capacity: 4 } })
    );
    let queue_pair = queue_pairs[0].number();
    assert_eq!(
        queue_pairs[0].post_receive(&[receive]).map_err(Error::from),
        Err(Error::HasSharedReceiveQueue { queue_pair })
    );
    assert_eq!(queue_pairs[0].max_recv_wr(), 0);
}
