//! Access to memory needs the right key, domain, right and range.

use crate::common::*;
use ibverbs_sim::*;

/// Runs one request, checks the states and the responder's event, and returns the status.
fn outcome(a: &End, b: &End, operation: Operation, payload: Payload<'_>) -> CompletionStatus {
    a.post(&[request(1, operation, payload)]);
    let status = a.sent()[0].status;
    match status {
        CompletionStatus::Success => {
            assert_eq!(a.queue_pair.state(), QueuePairState::ReadyToSend);
        }
        CompletionStatus::RemoteAccess => {
            let queue_pair = b.queue_pair.number();
            let event = AsyncEvent::QueuePairAccessError { queue_pair };
            assert_eq!(b.context.poll_async_event(), Some(event));
            assert_eq!(b.queue_pair.state(), QueuePairState::Error);
            assert_eq!(a.queue_pair.state(), QueuePairState::Error);
        }
        _ => assert_eq!(a.queue_pair.state(), QueuePairState::Error),
    }
    status
}

fn operations(remote: RemoteAddress) -> [(Operation, Access); 5] {
    [
        (Operation::Write { remote }, Access::REMOTE_WRITE),
        (Operation::WriteWithImmediate { remote, immediate: 0 }, Access::REMOTE_WRITE),
        (Operation::Read { remote }, Access::REMOTE_READ),
        (Operation::FetchAdd { remote, add: 1 }, Access::REMOTE_ATOMIC),
        (Operation::CompareSwap { remote, compare: 0, swap: 1 }, Access::REMOTE_ATOMIC),
    ]
}

const RIGHTS: [Access; 4] =
    [Access::LOCAL_WRITE, Access::REMOTE_WRITE, Access::REMOTE_READ, Access::REMOTE_ATOMIC];

#[test]
fn every_remote_right_of_a_region_opens_its_operations_only() {
    for given in RIGHTS {
        for which in 0..5 {
            let (a, b) = pair();
            b.receives(0..1);
            let local = a.buffer(8);
            let target = b.buffer_with(&b.domain, 8, given | Access::LOCAL_WRITE);
            let (operation, needed) = operations(target.region.at(0))[which];
            let expected = if given == needed {
                CompletionStatus::Success
            } else {
                CompletionStatus::RemoteAccess
            };
            let status = outcome(&a, &b, operation, Payload::Gather(&[local.all()]));
            assert_eq!(status, expected, "{operation:?} with {given:?}");
        }
    }
}

#[test]
fn every_remote_right_of_a_queue_pair_opens_its_operations_only() {
    for given in RIGHTS {
        for which in 0..5 {
            let (a, b) = pair_on(&device(), &Connection { access: given, ..Connection::default() });
            b.receives(0..1);
            let (local, target) = (a.buffer(8), b.buffer(8));
            let (operation, needed) = operations(target.region.at(0))[which];
            let expected = if given == needed {
                CompletionStatus::Success
            } else {
                CompletionStatus::RemoteInvalidRequest
            };
            let status = outcome(&a, &b, operation, Payload::Gather(&[local.all()]));
            assert_eq!(status, expected, "{operation:?} with {given:?}");
        }
    }
}

#[test]
fn regions_end_where_they_end() {
    let cases = [(0, 16, true), (15, 1, true), (16, 0, true), (0, 17, false), (16, 1, false)];
    for (offset, length, inside) in cases {
        let (a, b) = pair();
        let (local, target) = (a.buffer(32), b.buffer(16));
        let operation = Operation::Write { remote: target.region.at(offset) };
        let list = [local.region.slice(0, length)];
        let expected =
            if inside { CompletionStatus::Success } else { CompletionStatus::RemoteAccess };
        assert_eq!(outcome(&a, &b, operation, Payload::Gather(&list)), expected, "{offset}");
    }
    for address in [u64::MAX, 0, u64::MAX - 7] {
        let (a, b) = pair();
        let (local, target) = (a.buffer(8), b.buffer(16));
        let key = target.region.remote_key();
        let operation = Operation::Read { remote: RemoteAddress { address, key } };
        let list = [local.all()];
        let status = outcome(&a, &b, operation, Payload::Gather(&list));
        assert_eq!(status, CompletionStatus::RemoteAccess);
    }
    let (a, b) = pair();
    let target = b.buffer(16);
    let before = target.region.at(0).address - 1;
    let remote = RemoteAddress { address: before, key: target.region.remote_key() };
    let status = outcome(&a, &b, Operation::Write { remote }, Payload::Inline(b"x"));
    assert_eq!(status, CompletionStatus::RemoteAccess);
    assert_eq!(target.bytes(), [0; 16]);
}

#[test]
fn other_domains_and_stale_keys_are_refused() {
    let (a, b) = pair();
    let other_domain = b.context.allocate_protection_domain();
    let target = Buffer::new(&other_domain, 8, Access::ALL);
    let operation = Operation::Write { remote: target.region.at(0) };
    let status = outcome(&a, &b, operation, Payload::Inline(b"x"));
    assert_eq!(status, CompletionStatus::RemoteAccess);

    let (a, b) = pair();
    let old = b.buffer(8);
    let remote = old.region.at(0);
    let key = old.region.remote_key();
    drop(old);
    // A new region may get the slot and even the address of the old one, but not its key.
    let regions: Vec<_> = (0..4).map(|_| b.buffer(8)).collect();
    assert!(regions.iter().all(|new| new.region.remote_key() != key));
    let status = outcome(&a, &b, Operation::Write { remote }, Payload::Inline(b"x"));
    assert_eq!(status, CompletionStatus::RemoteAccess);
}

#[test]
fn local_lists_are_checked_too() {
    let wrong = |adjust: fn(&End, &Buffer) -> ScatterGather,
                 operation: fn(&Buffer) -> Operation| {
        let (a, b) = pair();
        b.receives(0..1);
        let (local, target) = (a.buffer(8), b.buffer(64));
        let piece = adjust(&a, &local);
        let status = outcome(&a, &b, operation(&target), Payload::Gather(&[piece]));
        assert_eq!(status, CompletionStatus::LocalProtection);
        // The responder has received nothing.
        assert_eq!(b.queue_pair.state(), QueuePairState::ReadyToSend);
    };
    let write: fn(&Buffer) -> Operation = |target| Operation::Write { remote: target.region.at(0) };
    let read: fn(&Buffer) -> Operation = |target| Operation::Read { remote: target.region.at(0) };
    wrong(|_, local| local.region.slice(0, 9), write);
    wrong(|_, local| ScatterGather { key: LocalKey::default(), ..local.all() }, write);
    wrong(
        |_, local| ScatterGather { key: LocalKey::default(), ..local.all() },
        |_| Operation::Send,
    );
    // The device has no right to write.
    let (a, b) = pair();
    let (local, target) = (a.buffer_with(&a.domain, 8, Access::NONE), b.buffer(8));
    let list = Payload::Gather(&[local.all()]);
    assert_eq!(outcome(&a, &b, write(&target), list), CompletionStatus::Success);
    assert_eq!(outcome(&a, &b, read(&target), list), CompletionStatus::LocalProtection);
}

#[test]
fn a_receive_that_may_not_be_written_fails_both_ends() {
    let (a, b) = pair();
    let target = b.buffer_with(&b.domain, 8, Access::REMOTE_READ);
    b.receive(7, &[target.all()]);
    b.receives(8..9);
    a.post(&[request(1, Operation::Send, Payload::Inline(b"x")), send(2)]);
    let flushed = CompletionStatus::WorkRequestFlushed;
    assert_eq!(statuses(&b.received()), [(7, CompletionStatus::LocalProtection), (8, flushed)]);
    assert_eq!(statuses(&a.sent()), [(1, CompletionStatus::RemoteOperation), (2, flushed)]);
}

#[test]
fn rights_that_contradict_each_other_are_refused() {
    let (a, _b) = pair();
    let memory = std::ptr::NonNull::<u64>::dangling().cast();
    for access in [Access::REMOTE_WRITE, Access::REMOTE_ATOMIC | Access::REMOTE_READ] {
        let registered = register(&a.domain, memory, 0, access);
        assert_eq!(registered.unwrap_err(), Error::InconsistentAccess { access });
    }
    let registered = register(&a.domain, memory, usize::MAX, Access::NONE);
    assert!(matches!(registered, Err(Error::LimitExceeded { what: "max_mr_size", .. })));
}

#[test]
fn a_key_of_an_earlier_device_is_refused() {
    let keys = [(); 3].map(|()| {
        let (a, b) = pair();
        let (buffer, target) = (a.buffer(8), b.buffer(8));
        [buffer.region.remote_key(), target.region.remote_key()]
    });
    let (a, b) = pair();
    let (buffer, target) = (a.buffer(8), b.buffer(8));
    let RemoteAddress { address, key } = target.region.at(0);
    let all = keys.as_flattened();
    assert!(!all.contains(&key) && !all.contains(&buffer.region.remote_key()));
    let write = Operation::Write { remote: RemoteAddress { address, key: keys[0][1] } };
    a.post(&[request(1, write, Payload::Inline(&[1; 8]))]);
    assert_eq!(statuses(&a.sent()), [(1, CompletionStatus::RemoteAccess)]);
    assert_eq!(target.bytes(), [0; 8]);
}
