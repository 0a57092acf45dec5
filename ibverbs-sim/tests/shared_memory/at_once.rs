#![allow(unsafe_code, reason = "segments are registered")]
//! Data is copied between the memories of two processes at once, as far as the peer permits it.

use std::{
    ptr,
    sync::{Arc, atomic::AtomicU64},
};

use crate::{
    common::*,
    connected_pair::{ConnectedPair, settle},
};
use ibverbs_sim::*;

const SUCCESS: CompletionStatus = CompletionStatus::Success;
/// Bytes that the kernel copies between processes; fewer go as packets, unless they lie in segments.
const LONG: usize = 32 << 10;

/// Creates a pair whose first end has the permit of the other.
fn permitted() -> ConnectedPair {
    let pair = ConnectedPair::new();
    permit(&pair);
    pair
}

fn permit(pair: &ConnectedPair) {
    pair.b.receives(0..1);
    pair.a.post(&[send(0)]);
    pair.settle();
    assert_eq!((pair.a.sent().len(), pair.b.received().len()), (1, 1));
}

/// Creates buffers at both ends, known to each other, of which that of the first is full of `byte`.
fn buffers(pair: &ConnectedPair, byte: u8) -> (Buffer, Buffer) {
    let (local, remote) = (pair.a.buffer(LONG), pair.b.buffer(LONG));
    pair.settle();
    local.fill(&[byte; LONG]);
    (local, remote)
}

#[test]
fn writes_and_reads_end_in_their_post_without_the_processor_of_the_peer() {
    let pair = permitted();
    let (local, remote) = buffers(&pair, 7);
    let write = Operation::Write { remote: remote.region.at(0) };
    pair.a.post(&[request(1, write, Payload::Gather(&[local.all()]))]);
    assert_eq!(statuses(&pair.a.sent()), [(1, SUCCESS)]);
    assert_eq!(remote.bytes(), [7; LONG]);
    remote.fill(&[8; LONG]);
    let read = Operation::Read { remote: remote.region.at(0) };
    pair.a.post(&[request(2, read, Payload::Gather(&[local.all()]))]);
    assert_eq!(statuses(&pair.a.sent()), [(2, SUCCESS)]);
    assert_eq!(local.bytes(), [8; LONG]);
}

#[test]
fn the_data_of_an_immediate_is_there_before_it() {
    let pair = permitted();
    let (local, remote) = buffers(&pair, 7);
    let operation = Operation::WriteWithImmediate { remote: remote.region.at(0), immediate: 5 };
    pair.a.post(&[request(1, operation, Payload::Gather(&[local.all()]))]);
    assert_eq!(remote.bytes(), [7; LONG]);
    assert!(pair.a.sent().is_empty());
    // The peer has no receive, and gets the data once more with the request.
    pair.settle();
    pair.b.receives(1..2);
    pair.settle();
    let received = pair.b.received();
    assert_eq!((received[0].byte_len as usize, received[0].immediate), (LONG, Some(5)));
    assert_eq!(statuses(&pair.a.sent()), [(1, SUCCESS)]);
}

#[test]
fn a_write_overtakes_no_request_that_was_posted_before() {
    let pair = permitted();
    let (local, remote) = buffers(&pair, 7);
    let write = Operation::Write { remote: remote.region.at(0) };
    pair.a.post(&[send(1), request(2, write, Payload::Gather(&[local.all()]))]);
    pair.settle();
    assert_eq!(remote.bytes(), [0; LONG]);
    pair.b.receives(1..2);
    pair.settle();
    assert_eq!(remote.bytes(), [7; LONG]);
    assert_eq!(statuses(&pair.a.sent()), [(1, SUCCESS), (2, SUCCESS)]);
}

#[test]
fn nothing_is_written_once_the_peer_is_in_error_or_reset() {
    for state in [QueuePairState::Error, QueuePairState::Reset] {
        let pair = permitted();
        let (local, remote) = buffers(&pair, 7);
        pair.b.go_to(state);
        let write = Operation::Write { remote: remote.region.at(0) };
        pair.a.post(&[request(1, write, Payload::Gather(&[local.all()]))]);
        pair.settle();
        assert_eq!(remote.bytes(), [0; LONG]);
        assert!(pair.a.sent().is_empty());
    }
}

#[test]
fn nothing_is_written_to_a_killed_peer() {
    let pair = permitted();
    let (local, remote) = buffers(&pair, 7);
    pair.b.context.kill();
    let write = Operation::Write { remote: remote.region.at(0) };
    pair.a.post(&[request(1, write, Payload::Gather(&[local.all()]))]);
    pair.settle();
    assert_eq!(remote.bytes(), [0; LONG]);
}

#[test]
fn memory_that_was_deregistered_is_refused() {
    let pair = permitted();
    let (local, remote) = buffers(&pair, 7);
    let write = Operation::Write { remote: remote.region.at(0) };
    let words = remote.deregister();
    pair.a.post(&[request(1, write, Payload::Gather(&[local.all()]))]);
    assert!(pair.a.sent().is_empty());
    pair.settle();
    assert_eq!(statuses(&pair.a.sent()), [(1, CompletionStatus::RemoteAccess)]);
    assert!(words.iter().all(|word| word.load(std::sync::atomic::Ordering::SeqCst) == 0));
}

#[test]
fn rights_of_region_connection_and_domain_hold() {
    let none = Connection { access: Access::REMOTE_READ, ..Connection::default() };
    let cases: [(Connection, Access, bool); 3] = [
        (Connection::default(), Access::LOCAL_WRITE | Access::REMOTE_READ, false),
        (none, Access::ALL, false),
        (Connection::default(), Access::ALL, true),
    ];
    for (connection, access, in_other_domain) in cases {
        let pair = ConnectedPair::with(&connection, |_| {});
        permit(&pair);
        let other = pair.b.context.allocate_protection_domain();
        let domain = if in_other_domain { &other } else { &pair.b.domain };
        let (local, remote) = (pair.a.buffer(LONG), Buffer::new(domain, LONG, access));
        pair.settle();
        local.fill(&[7; LONG]);
        let write = Operation::Write { remote: remote.region.at(0) };
        pair.a.post(&[request(1, write, Payload::Gather(&[local.all()]))]);
        assert_eq!(remote.bytes(), [0; LONG]);
        pair.settle();
        assert_eq!(remote.bytes(), [0; LONG]);
        assert_ne!(pair.a.sent()[0].status, SUCCESS);
    }
}

#[test]
fn short_data_is_copied_at_once_to_a_segment() {
    let rails = ShmRail::mesh(2, &ShmConfig::default()).unwrap();
    let rails: Vec<_> = rails.into_iter().map(Arc::new).collect();
    let on = |rail: &Arc<ShmRail>| {
        Device::with_rail(DeviceConfig::default(), Arc::clone(rail) as _).unwrap()
    };
    let devices: Vec<_> = rails.iter().map(on).collect();
    let ends: Vec<_> = devices.iter().map(|device| End::new(device, |_| {})).collect();
    for (end, peer) in [(0, 1), (1, 0)] {
        let number = ends[peer].queue_pair.number();
        let connection = Connection::default();
        ends[end].queue_pair.connect_to(peer as u32, number, &connection).unwrap();
    }
    let segment = rails[1].allocate(64).unwrap();
    let start = segment.memory().cast::<u8>();
    // SAFETY: the segment outlives the region, and is read below when no request is under way.
    let region = unsafe { ends[1].domain.register(start, 64, Access::ALL).unwrap() };
    ends[1].receives(0..1);
    ends[0].post(&[send(0)]);
    settle(&devices);
    ends[0].sent();
    let pieces = Payload::Inline(b"sixteen bytes!!!");
    for offset in [0, 3] {
        let write = Operation::Write { remote: region.at(offset) };
        ends[0].post(&[request(1, write, pieces)]);
        assert_eq!(statuses(&ends[0].sent()), [(1, SUCCESS)]);
        let mut bytes = [0; 16];
        // SAFETY: the segment has as many bytes, and no request is under way.
        unsafe { ptr::copy(start.as_ptr().wrapping_add(offset), bytes.as_mut_ptr(), 16) };
        assert_eq!(&bytes, b"sixteen bytes!!!");
    }
    // SAFETY: a segment begins at a page, and the word is an atomic.
    let word = unsafe { AtomicU64::from_ptr(start.as_ptr().cast()) };
    let outside = Operation::Write { remote: region.at(56) };
    ends[0].post(&[request(2, outside, pieces)]);
    settle(&devices);
    assert_eq!(statuses(&ends[0].sent()), [(2, CompletionStatus::RemoteAccess)]);
    assert_ne!(word.load(std::sync::atomic::Ordering::SeqCst), 0);
    drop(region);
}
