//! Messages that are longer than the receive or the device's limit fail.

use crate::common::*;
use ibverbs_sim::*;

#[test]
fn a_message_longer_than_the_receive_fails_both_ends() {
    for (length, fits) in [(8, true), (9, false)] {
        let (a, b) = pair();
        let target = b.buffer(16);
        b.receive(7, &[target.region.slice(0, 3), target.region.slice(8, 5)]);
        let bytes = [1; 16];
        a.post(&[request(1, Operation::Send, Payload::Inline(&bytes[..length]))]);
        let (sent, received) = (statuses(&a.sent()), statuses(&b.received()));
        if fits {
            assert_eq!(sent, [(1, CompletionStatus::Success)]);
            assert_eq!(received, [(7, CompletionStatus::Success)]);
        } else {
            assert_eq!(sent, [(1, CompletionStatus::RemoteInvalidRequest)]);
            assert_eq!(received, [(7, CompletionStatus::LocalLength)]);
            assert_eq!(target.bytes(), [0; 16]);
        }
    }
}

#[test]
fn a_message_longer_than_the_device_carries_fails() {
    let mut attributes = DeviceAttributes::default();
    attributes.max_message_size = 100;
    let device = Devices::new(DeviceConfig { attributes, ..DeviceConfig::default() });
    for (length, expected) in
        [(100, CompletionStatus::Success), (101, CompletionStatus::LocalLength)]
    {
        for read in [false, true] {
            let (a, b) = pair_on(&device, &Connection::default());
            assert_eq!(a.context.query_port(1).unwrap().max_message_size, 100);
            let (local, target) = (a.buffer(128), b.buffer(128));
            let remote = target.region.at(0);
            let operation =
                if read { Operation::Read { remote } } else { Operation::Write { remote } };
            let list = [local.region.slice(0, 64), local.region.slice(64, length - 64)];
            a.post(&[request(1, operation, Payload::Gather(&list))]);
            assert_eq!(statuses(&a.sent()), [(1, expected)]);
        }
    }
}

#[test]
fn an_atomic_brings_back_eight_bytes() {
    for (length, expected) in [
        (7, CompletionStatus::LocalLength),
        (8, CompletionStatus::Success),
        (9, CompletionStatus::LocalLength),
    ] {
        let (a, b) = pair();
        let (local, word) = (a.buffer(16), b.buffer(8));
        let operation = Operation::FetchAdd { remote: word.region.at(0), add: 1 };
        a.post(&[request(1, operation, Payload::Gather(&[local.region.slice(0, length)]))]);
        assert_eq!(a.sent()[0].status, expected);
    }
    // The result may be scattered.
    let (a, b) = pair();
    let (local, word) = (a.buffer(16), b.buffer(8));
    word.fill(b"12345678");
    let list = [local.region.slice(9, 3), local.region.slice(0, 5)];
    let operation = Operation::FetchAdd { remote: word.region.at(0), add: 0 };
    a.post(&[request(1, operation, Payload::Gather(&list))]);
    assert_eq!(local.bytes(), b"45678\0\0\0\x00123\0\0\0\0");
}
