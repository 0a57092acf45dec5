//! Claims of a peer in another process are checked as those of any peer.

use crate::common::*;
use crate::connected_pair::ConnectedPair;
use ibverbs_sim::*;

/// Posts one write that is refused, and checks that both ends are in error and nothing was written.
fn refused(
    pair: &ConnectedPair,
    target: &Buffer,
    remote: RemoteAddress,
    length: u32,
    expected: CompletionStatus,
) {
    let source = pair.a.buffer(64);
    source.fill(&[1; 64]);
    let payload = [source.region.slice(0, length)];
    pair.a.post(&[request(1, Operation::Write { remote }, Payload::Gather(&payload)), send(2)]);
    pair.settle();
    let flushed = CompletionStatus::WorkRequestFlushed;
    assert_eq!(statuses(&pair.a.sent()), [(1, expected), (2, flushed)]);
    assert_eq!(pair.a.queue_pair.state(), QueuePairState::Error);
    assert_eq!(pair.b.queue_pair.state(), QueuePairState::Error);
    assert!(target.bytes().iter().all(|byte| *byte == 0));
}

#[test]
fn a_wrong_key_an_address_outside_and_too_much_are_refused() {
    for (offset, length, key) in [(0, 8, 1), (57, 8, 0), (64, 1, 0), (usize::MAX, 2, 0)] {
        let pair = ConnectedPair::new();
        let target = pair.b.buffer(64);
        let RemoteAddress { address, key: right } = target.region.at(offset);
        let key = RemoteKey::from_u32(right.to_u32() + key);
        let access = CompletionStatus::RemoteAccess;
        refused(&pair, &target, RemoteAddress { address, key }, length, access);
        let event = AsyncEvent::QueuePairAccessError { queue_pair: pair.b.queue_pair.number() };
        assert_eq!(pair.b.context.poll_async_event(), Some(event));
    }
}

#[test]
fn a_region_without_the_right_and_one_of_another_domain_are_refused() {
    let pair = ConnectedPair::new();
    let target = Buffer::new(&pair.b.domain, 64, Access::LOCAL_WRITE | Access::REMOTE_READ);
    refused(&pair, &target, target.region.at(0), 8, CompletionStatus::RemoteAccess);

    let pair = ConnectedPair::new();
    let other = pair.b.context.allocate_protection_domain();
    let target = Buffer::new(&other, 64, Access::ALL);
    refused(&pair, &target, target.region.at(0), 8, CompletionStatus::RemoteAccess);
}

#[test]
fn a_connection_without_the_right_refuses_the_request() {
    let connection = Connection { access: Access::REMOTE_READ, ..Connection::default() };
    let pair = ConnectedPair::with(&connection, |_| {});
    let target = pair.b.buffer(64);
    refused(&pair, &target, target.region.at(0), 8, CompletionStatus::RemoteInvalidRequest);
}

#[test]
fn a_deregistered_region_is_refused() {
    let pair = ConnectedPair::new();
    let target = pair.b.buffer(64);
    let remote = target.region.at(0);
    let _memory = target.deregister();
    let untouched = pair.b.buffer(8);
    refused(&pair, &untouched, remote, 8, CompletionStatus::RemoteAccess);
}

#[test]
fn a_receive_that_is_too_short_fails_both_requests() {
    let pair = ConnectedPair::new();
    let target = pair.b.buffer(64);
    pair.b.receive(9, &[target.region.slice(0, 4)]);
    pair.a.post(&[request(1, Operation::Send, Payload::Inline(b"12345"))]);
    pair.settle();
    assert_eq!(statuses(&pair.a.sent()), [(1, CompletionStatus::RemoteInvalidRequest)]);
    assert_eq!(statuses(&pair.b.received()), [(9, CompletionStatus::LocalLength)]);
    assert_eq!(target.bytes(), [0; 64]);
}

#[test]
fn only_the_process_it_is_connected_to_is_answered() {
    let devices = crate::connected_pair::devices(3);
    let ends: Vec<_> = devices.iter().map(|device| End::new(device, |_| {})).collect();
    let number = |end: usize| ends[end].queue_pair.number();
    // Numbers of queue pairs are the same in all processes: only the process distinguishes end 2
    // from end 0.
    assert_eq!(number(0), number(2));
    let connection = Connection { timeout_ns: 10, retry_count: 0, ..Connection::default() };
    ends[0].queue_pair.connect_to(1, number(1), &connection).unwrap();
    ends[1].queue_pair.connect_to(0, number(0), &connection).unwrap();
    ends[2].queue_pair.connect_to(1, number(1), &connection).unwrap();
    let target = ends[1].buffer(8);
    let write = Operation::Write { remote: target.region.at(0) };
    ends[2].post(&[request(1, write, Payload::Inline(b"x"))]);
    crate::connected_pair::settle(&devices);
    assert_eq!(target.bytes(), [0; 8]);
    ends[2].context.advance(10);
    assert_eq!(statuses(&ends[2].sent()), [(1, CompletionStatus::RetryExceeded)]);
    ends[0].post(&[request(2, write, Payload::Inline(b"x"))]);
    crate::connected_pair::settle(&devices);
    assert_eq!(statuses(&ends[0].sent()), [(2, CompletionStatus::Success)]);
}

#[test]
fn there_are_as_many_processes_as_the_wire_says() {
    let devices = crate::connected_pair::devices(2);
    let end = End::new(&devices[0], |_| {});
    let connect = |process| {
        end.queue_pair.connect_to(process, QueuePairNumber::from_u32(1), &Connection::default())
    };
    assert_eq!(connect(2), Err(Error::NoSuchProcess { process: 2, processes: 2 }));
    assert_eq!(end.queue_pair.state(), QueuePairState::Reset);
    connect(1).unwrap();
    assert!(devices[0].send_datagram(1, &[]).is_ok());
    assert!(devices[0].send_datagram(2, &[]).is_err());
}
