//! A request that finds no receive waits for one in its own process.

use crate::common::*;
use crate::connected_pair::ConnectedPair;
use ibverbs_sim::*;

const SUCCESS: CompletionStatus = CompletionStatus::Success;

#[test]
fn the_next_receive_lets_a_waiting_request_through() {
    let pair = ConnectedPair::new();
    pair.a.post(&[send(1), send(2), send(3)]);
    for wr_id in 1..=3 {
        pair.settle();
        assert!(pair.a.sent().is_empty());
        pair.b.receives(wr_id..wr_id + 1);
        pair.settle();
        assert_eq!(statuses(&pair.a.sent()), [(wr_id, SUCCESS)]);
        assert_eq!(statuses(&pair.b.received()), [(wr_id, SUCCESS)]);
    }
}

#[test]
fn a_shared_queue_serves_whoever_waits() {
    let devices = crate::connected_pair::devices(3);
    let target = End::new(&devices[2], |_| {});
    let init = SharedReceiveQueueInit { max_wr: 4, max_sge: 1 };
    let srq = target.domain.create_shared_receive_queue(&init).unwrap();
    let ends: Vec<_> = devices[..2].iter().map(|device| End::new(device, |_| {})).collect();
    let mut answering = Vec::new();
    for (process, end) in ends.iter().enumerate() {
        let mut init = QueuePairInit::new(&target.send_cq, &target.recv_cq);
        init.srq = Some(srq.clone());
        let peer = target.domain.create_queue_pair(&init).unwrap();
        let connection = Connection::default();
        peer.connect_to(process as u32, end.queue_pair.number(), &connection).unwrap();
        end.queue_pair.connect_to(2, peer.number(), &connection).unwrap();
        answering.push(peer);
        end.post(&[send(process as u64)]);
    }
    crate::connected_pair::settle(&devices);
    assert!(target.received().is_empty());
    srq.post_receive(&[ReceiveWorkRequest { wr_id: 7, scatter: &[] }]).unwrap();
    crate::connected_pair::settle(&devices);
    assert_eq!(target.received().len(), 1);
    assert_eq!(ends[0].sent().len() + ends[1].sent().len(), 1);
    srq.post_receive(&[ReceiveWorkRequest { wr_id: 8, scatter: &[] }]).unwrap();
    crate::connected_pair::settle(&devices);
    assert_eq!(target.received().len(), 1);
    assert_eq!(ends[0].sent().len() + ends[1].sent().len(), 1);
}

#[test]
fn retries_run_out_when_no_receive_comes() {
    let connection =
        Connection { rnr_retry: 1, min_rnr_timer_ns: 100, timeout_ns: 0, ..Default::default() };
    let pair = ConnectedPair::with(&connection, |_| {});
    pair.a.post(&[send(1)]);
    pair.settle();
    assert!(pair.a.sent().is_empty());
    pair.a.context.advance(100);
    pair.settle();
    let exceeded = CompletionStatus::ReceiverNotReadyRetryExceeded;
    assert_eq!(statuses(&pair.a.sent()), [(1, exceeded)]);
    pair.b.receives(0..1);
    pair.settle();
    assert!(pair.b.received().is_empty());
}

#[test]
fn an_error_flushes_what_waits_and_nothing_arrives_later() {
    let pair = ConnectedPair::new();
    pair.a.post(&[send(1), send(2)]);
    pair.settle();
    pair.a.go_to(QueuePairState::Error);
    let flushed = CompletionStatus::WorkRequestFlushed;
    assert_eq!(statuses(&pair.a.sent()), [(1, flushed), (2, flushed)]);
    pair.b.receives(0..2);
    pair.settle();
    assert!(pair.b.received().is_empty());
}

#[test]
fn nothing_lands_at_an_end_in_error() {
    let pair = ConnectedPair::new();
    let target = pair.b.buffer(8);
    let write = Operation::Write { remote: target.region.at(0) };
    pair.a.post(&[request(1, write, Payload::Inline(b"x"))]);
    pair.b.go_to(QueuePairState::Error);
    pair.settle();
    assert_eq!(target.bytes(), [0; 8]);
    assert!(pair.a.sent().is_empty());
}
