//! Several requests of a queue pair are under way, and complete in order.

use crate::common::*;
use crate::connected_pair::ConnectedPair;
use ibverbs_sim::*;

const SUCCESS: CompletionStatus = CompletionStatus::Success;

#[test]
fn more_requests_than_the_window_has_room_for_complete_in_order() {
    let pair = ConnectedPair::with(&Connection::default(), |init| init.max_send_wr = 256);
    let target = pair.b.buffer(8);
    let write = Operation::Write { remote: target.region.at(0) };
    for wr_id in 0..200u64 {
        let bytes = wr_id.to_ne_bytes();
        pair.a.post(&[request(wr_id, write, Payload::Inline(&bytes))]);
    }
    assert!(pair.a.sent().is_empty() && !pair.a.queue_pair.is_drained());
    assert!(pair.a.queue_pair.awaits_response() && !pair.b.queue_pair.awaits_response());
    pair.settle();
    let sent: Vec<u64> = pair.a.sent().iter().map(|sent| sent.wr_id).collect();
    assert!(sent.into_iter().eq(0..200));
    assert_eq!(target.bytes(), 199u64.to_ne_bytes());
    assert!(pair.a.queue_pair.is_drained() && !pair.a.queue_pair.awaits_response());
}

#[test]
fn one_pass_of_both_ends_carries_out_many_requests() {
    let pair = ConnectedPair::new();
    pair.b.receives(0..40);
    pair.a.post(&std::array::from_fn::<_, 40, _>(|at| send(at as u64)));
    pair.device(1).progress().unwrap();
    pair.device(0).progress().unwrap();
    assert_eq!(pair.a.sent().len(), 40);
}

#[test]
fn a_fenced_request_waits_for_the_data_of_those_before_it() {
    let pair = ConnectedPair::new();
    let (local, remote) = (pair.a.buffer(8), pair.b.buffer(16));
    remote.fill(b"fresh!!!");
    let list = [local.all()];
    let read = Operation::Read { remote: remote.region.at(0) };
    let write = Operation::Write { remote: remote.region.at(8) };
    let flags = SendFlags::SIGNALLED | SendFlags::FENCE;
    pair.a.post(&[
        request(1, read, Payload::Gather(&list)),
        SendWorkRequest { flags, ..request(2, write, Payload::Gather(&list)) },
    ]);
    pair.settle();
    assert_eq!(statuses(&pair.a.sent()), [(1, SUCCESS), (2, SUCCESS)]);
    assert_eq!(remote.bytes(), b"fresh!!!fresh!!!");
}

#[test]
fn an_error_of_this_end_comes_after_the_requests_before_it() {
    let pair = ConnectedPair::new();
    pair.b.receives(0..2);
    let source = pair.a.buffer(8);
    let list = [source.all()];
    drop(source.deregister());
    pair.a.post(&[send(1), request(2, Operation::Send, Payload::Gather(&list)), send(3)]);
    assert!(pair.a.sent().is_empty());
    pair.settle();
    let (protection, flushed) =
        (CompletionStatus::LocalProtection, CompletionStatus::WorkRequestFlushed);
    assert_eq!(statuses(&pair.a.sent()), [(1, SUCCESS), (2, protection), (3, flushed)]);
    assert_eq!(pair.b.received().len(), 1);
}

#[test]
fn requests_behind_a_refused_one_are_flushed_and_have_no_effect() {
    let pair = ConnectedPair::new();
    let target = pair.b.buffer(8);
    let inside = Operation::Write { remote: target.region.at(0) };
    let outside = Operation::Write { remote: target.region.at(8) };
    let payload = Payload::Inline(b"x");
    pair.a.post(&[request(1, inside, payload), request(2, outside, payload)]);
    pair.a.post(&[request(3, inside, Payload::Inline(b"y"))]);
    pair.settle();
    let (refused, flushed) = (CompletionStatus::RemoteAccess, CompletionStatus::WorkRequestFlushed);
    assert_eq!(statuses(&pair.a.sent()), [(1, SUCCESS), (2, refused), (3, flushed)]);
    assert_eq!(target.bytes()[0], b'x');
}

#[test]
fn requests_that_the_peer_had_no_receive_for_are_sent_again_with_their_data() {
    let pair = ConnectedPair::new();
    let (source, target) = (pair.a.buffer(24), pair.b.buffer(64));
    source.fill(b"abcdefghijklmnopqrstuvwx");
    let pieces = [source.region.slice(16, 8), source.region.slice(0, 8)];
    let inline =
        |wr_id, bytes: &'static [u8]| request(wr_id, Operation::Send, Payload::Inline(bytes));
    pair.a.post(&[
        inline(1, b"first"),
        request(2, Operation::Send, Payload::Gather(&pieces)),
        inline(3, b"third"),
    ]);
    pair.settle();
    assert!(pair.a.sent().is_empty());
    for (wr_id, offset) in [(1, 0), (2, 8), (3, 24)] {
        pair.b.receive(wr_id, &[target.region.slice(offset, 16)]);
    }
    pair.settle();
    assert_eq!(statuses(&pair.a.sent()), [(1, SUCCESS), (2, SUCCESS), (3, SUCCESS)]);
    assert_eq!(&target.bytes()[..29], b"first\0\0\0qrstuvwxabcdefghthird");
}

#[test]
fn a_peer_that_connects_late_gets_what_was_sent_before() {
    let devices = crate::connected_pair::devices(2);
    let ends: Vec<_> = devices.iter().map(|device| End::new(device, |_| {})).collect();
    let connection = Connection { timeout_ns: 100, ..Connection::default() };
    let connect = |end: usize| {
        let peer = ends[1 - end].queue_pair.number();
        ends[end].queue_pair.connect_to(1 - end as u32, peer, &connection).unwrap();
    };
    connect(0);
    ends[0].post(&[send(1), send(2), send(3)]);
    crate::connected_pair::settle(&devices);
    connect(1);
    ends[1].receives(0..3);
    crate::connected_pair::settle(&devices);
    assert!(ends[0].sent().is_empty() && ends[1].received().is_empty());
    ends[0].context.advance(100);
    crate::connected_pair::settle(&devices);
    assert_eq!(statuses(&ends[0].sent()), [(1, SUCCESS), (2, SUCCESS), (3, SUCCESS)]);
    assert_eq!(ends[1].received().len(), 3);
}

#[test]
fn a_queue_pair_that_is_used_again_takes_no_late_responses() {
    let pair = ConnectedPair::new();
    pair.b.receives(0..2);
    pair.a.post(&[send(1)]);
    pair.device(1).progress().unwrap();
    // The response to the request is on its way.
    pair.a.go_to(QueuePairState::Reset);
    let connection = Connection::default();
    pair.a.queue_pair.connect_to(1, pair.b.queue_pair.number(), &connection).unwrap();
    pair.b.go_to(QueuePairState::Reset);
    pair.a.post(&[send(2)]);
    pair.device(0).progress().unwrap();
    assert!(pair.a.sent().is_empty());
}
