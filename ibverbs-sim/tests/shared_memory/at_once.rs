#![allow(unsafe_code, reason = "segments are registered")]
//! Data is copied between the memories of two processes at once, as far as the peer permits it.

use std::sync::{Arc, atomic::AtomicU64};

use crate::{common::*, connected_pair::ConnectedPair, devices::with_rails};
use ibverbs_sim::*;

const SUCCESS: CompletionStatus = CompletionStatus::Success;
/// Bytes of a buffer: more than would travel in one packet.
const LONG: usize = 32 << 10;

/// A pair whose first end has the permit of the other, and a rail to allocate from.
struct Permitted {
    pair: ConnectedPair,
    rail: Arc<ShmRail>,
}

/// A segment, as words.
struct Segment(ShmSegment);

impl AsRef<[AtomicU64]> for Segment {
    fn as_ref(&self) -> &[AtomicU64] {
        let memory = self.0.memory();
        // SAFETY: a segment begins at a page; it is used as atomics, and by requests at other times.
        unsafe { std::slice::from_raw_parts(memory.cast().as_ptr(), memory.len() / 8) }
    }
}

fn permitted() -> Permitted {
    permitted_with(&Connection::default())
}

fn permitted_with(connection: &Connection) -> Permitted {
    let (mut rails, devices) = with_rails(2);
    let pair = ConnectedPair::on(devices, connection, |_| {});
    pair.b.receives(0..1);
    pair.a.post(&[send(0)]);
    pair.settle();
    assert_eq!((pair.a.sent().len(), pair.b.received().len()), (1, 1));
    Permitted { pair, rail: rails.remove(1) }
}

impl Permitted {
    /// Creates a buffer at the second end, in a segment.
    fn remote(&self, domain: &ProtectionDomain, access: Access) -> Buffer {
        let segment = Segment(self.rail.allocate(LONG).unwrap());
        Buffer::in_memory(domain, Words::new(segment), LONG, access)
    }

    /// Creates buffers at both ends, known to each other, of which that of the first is full of 7.
    fn buffers(&self) -> (Buffer, Buffer) {
        let (local, remote) =
            (self.pair.a.buffer(LONG), self.remote(&self.pair.b.domain, Access::ALL));
        self.pair.settle();
        local.fill(&[7; LONG]);
        (local, remote)
    }
}

#[test]
fn writes_and_reads_end_in_their_post_without_the_processor_of_the_peer() {
    let permitted = permitted();
    let (pair, (local, remote)) = (&permitted.pair, permitted.buffers());
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
    let permitted = permitted();
    let (pair, (local, remote)) = (&permitted.pair, permitted.buffers());
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
    let permitted = permitted();
    let (pair, (local, remote)) = (&permitted.pair, permitted.buffers());
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
fn a_write_behind_an_empty_one_is_copied() {
    let permitted = permitted();
    let (pair, (local, remote)) = (&permitted.pair, permitted.buffers());
    let (at, list) = (remote.region.at(0), [local.all()]);
    let notice = Operation::WriteWithImmediate { remote: at, immediate: 5 };
    let write = request(2, Operation::Write { remote: at }, Payload::Gather(&list));
    pair.a.post(&[request(1, notice, Payload::Gather(&[])), write]);
    assert_eq!(remote.bytes(), [7; LONG]);
    assert!(pair.a.sent().is_empty(), "the notice ends first");
    pair.b.receives(1..2);
    pair.settle();
    assert_eq!(pair.b.received()[0].immediate, Some(5));
    assert_eq!(statuses(&pair.a.sent()), [(1, SUCCESS), (2, SUCCESS)]);
}

#[test]
fn a_read_behind_a_copied_write_is_copied_and_ends_after_it() {
    let permitted = permitted();
    let (pair, (local, remote)) = (&permitted.pair, permitted.buffers());
    let read_only = permitted.remote(&pair.b.domain, Access::REMOTE_READ);
    let into = pair.a.buffer(LONG);
    pair.settle();
    read_only.fill(&[3; LONG]);
    let write = Operation::WriteWithImmediate { remote: remote.region.at(0), immediate: 5 };
    let read = Operation::Read { remote: read_only.region.at(0) };
    let list = [into.all()];
    let behind = request(2, read, Payload::Gather(&list));
    pair.a.post(&[request(1, write, Payload::Gather(&[local.all()])), behind]);
    assert_eq!((remote.bytes(), into.bytes()), (vec![7; LONG], vec![3; LONG]));
    assert!(pair.a.sent().is_empty());
    // Both are sent again, as the peer has no receive; the read brings what is there then.
    read_only.fill(&[4; LONG]);
    pair.settle();
    pair.b.receives(1..2);
    pair.settle();
    let sent = pair.a.sent();
    assert_eq!(statuses(&sent), [(1, SUCCESS), (2, SUCCESS)]);
    assert_eq!((sent[1].byte_len as usize, into.bytes()), (LONG, vec![4; LONG]));
    // With a receive, both end without.
    pair.b.receives(2..3);
    let behind = request(4, read, Payload::Gather(&list));
    pair.a.post(&[request(3, write, Payload::Gather(&[local.all()])), behind]);
    read_only.fill(&[5; LONG]);
    pair.settle();
    assert_eq!(statuses(&pair.a.sent()), [(3, SUCCESS), (4, SUCCESS)]);
    assert_eq!(into.bytes(), vec![4; LONG]);
}

#[test]
fn nothing_is_written_once_the_peer_is_in_error_or_reset() {
    for state in [QueuePairState::Error, QueuePairState::Reset] {
        let permitted = permitted();
        let (pair, (local, remote)) = (&permitted.pair, permitted.buffers());
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
    let permitted = permitted();
    let (pair, (local, remote)) = (&permitted.pair, permitted.buffers());
    pair.b.context.kill();
    let write = Operation::Write { remote: remote.region.at(0) };
    pair.a.post(&[request(1, write, Payload::Gather(&[local.all()]))]);
    pair.settle();
    assert_eq!(remote.bytes(), [0; LONG]);
}

#[test]
fn memory_that_was_deregistered_is_refused() {
    let permitted = permitted();
    let (pair, (local, remote)) = (&permitted.pair, permitted.buffers());
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
        let permitted = permitted_with(&connection);
        let pair = &permitted.pair;
        let other = pair.b.context.allocate_protection_domain();
        let domain = if in_other_domain { &other } else { &pair.b.domain };
        let (local, remote) = (pair.a.buffer(LONG), permitted.remote(domain, access));
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
fn short_data_is_copied_wherever_it_begins_and_not_beyond_the_region() {
    let permitted = permitted();
    let (pair, (_, remote)) = (&permitted.pair, permitted.buffers());
    let bytes = Payload::Inline(b"sixteen bytes!!!");
    for offset in [0, 3] {
        let write = Operation::Write { remote: remote.region.at(offset) };
        pair.a.post(&[request(1, write, bytes)]);
        assert_eq!(statuses(&pair.a.sent()), [(1, SUCCESS)]);
        assert_eq!(&remote.bytes()[offset..offset + 16], b"sixteen bytes!!!");
    }
    let outside = Operation::Write { remote: remote.region.at(LONG - 8) };
    pair.a.post(&[request(2, outside, bytes)]);
    pair.settle();
    assert_eq!(statuses(&pair.a.sent()), [(2, CompletionStatus::RemoteAccess)]);
    assert_eq!(remote.bytes()[19..], [0; LONG - 19]);
}

/// Returns the first word of a buffer.
fn first_word(buffer: &Buffer) -> u64 {
    u64::from_ne_bytes(buffer.bytes()[..8].try_into().unwrap())
}

#[test]
fn words_are_changed_in_the_post_without_the_processor_of_the_peer() {
    let permitted = permitted();
    let (pair, remote) = (&permitted.pair, permitted.buffers().1);
    let (at, before) = (remote.region.at(0), pair.a.buffer(8));
    let (compare, swap) = (5, 9);
    for (operation, expected) in [
        (Operation::FetchAdd { remote: at, add: 5 }, (0, 5)),
        (Operation::CompareSwap { remote: at, compare, swap }, (5, 9)),
        (Operation::CompareSwap { remote: at, compare, swap }, (9, 9)),
    ] {
        pair.a.post(&[request(1, operation, Payload::Gather(&[before.all()]))]);
        assert_eq!(statuses(&pair.a.sent()), [(1, SUCCESS)]);
        assert_eq!((first_word(&before), first_word(&remote)), expected);
    }
}

#[test]
fn a_word_is_changed_once_though_its_packet_is_sent_again() {
    let permitted = permitted();
    let (pair, remote) = (&permitted.pair, permitted.buffers().1);
    let (at, before) = (remote.region.at(0), pair.a.buffer(8));
    let list = [before.all()];
    let notice = Operation::WriteWithImmediate { remote: at, immediate: 5 };
    let add = Operation::FetchAdd { remote: at, add: 3 };
    let add = request(2, add, Payload::Gather(&list));
    pair.a.post(&[request(1, notice, Payload::Gather(&[])), add]);
    assert_eq!((first_word(&before), first_word(&remote)), (0, 3));
    assert!(pair.a.sent().is_empty(), "the notice ends first");
    // Both are sent again, as the peer has no receive.
    pair.settle();
    pair.b.receives(1..2);
    pair.settle();
    let sent = pair.a.sent();
    assert_eq!(statuses(&sent), [(1, SUCCESS), (2, SUCCESS)]);
    assert_eq!((sent[1].byte_len, first_word(&before), first_word(&remote)), (8, 0, 3));
}

#[test]
fn words_keep_the_rights_of_region_and_connection_and_their_alignment() {
    let without = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ;
    let of_connection = Connection { access: without, ..Connection::default() };
    let cases = [
        (Connection::default(), without, 0),
        (of_connection, Access::ALL, 0),
        (Connection::default(), Access::ALL, 4),
        (Connection::default(), Access::ALL, LONG - 4),
    ];
    for (connection, access, offset) in cases {
        let permitted = permitted_with(&connection);
        let pair = &permitted.pair;
        let (before, remote) = (pair.a.buffer(8), permitted.remote(&pair.b.domain, access));
        pair.settle();
        let add = Operation::FetchAdd { remote: remote.region.at(offset), add: 3 };
        pair.a.post(&[request(1, add, Payload::Gather(&[before.all()]))]);
        pair.settle();
        assert_eq!(remote.bytes(), [0; LONG]);
        assert_ne!(pair.a.sent()[0].status, SUCCESS);
    }
}
