//! Requests to a lost process fail, and packets that it has sent arrive.

use std::sync::Arc;

use crate::{common::*, forger::message};
use ibverbs_sim::*;

#[test]
fn requests_to_a_process_that_is_gone_fail() {
    let mut devices = crate::connected_pair::devices(2);
    let end = End::new(&devices[0], |_| {});
    let connection = Connection { timeout_ns: 0, ..Connection::default() };
    end.queue_pair.connect_to(1, QueuePairNumber::from_u32(1), &connection).unwrap();
    end.post(&[send(1), send(2)]);
    devices[0].progress().unwrap();
    assert!(end.sent().is_empty() && !devices[0].is_lost(1));
    drop(devices.pop());
    devices[0].progress().unwrap();
    assert!(devices[0].is_lost(1));
    let exceeded = CompletionStatus::RetryExceeded;
    let flushed = CompletionStatus::WorkRequestFlushed;
    assert_eq!(statuses(&end.sent()), [(1, exceeded), (2, flushed)]);
}

#[test]
fn what_a_process_has_sent_before_it_went_arrives() {
    let mut wires = SocketWire::mesh(2).unwrap();
    let (second, first) = (wires.pop().unwrap(), wires.pop().unwrap());
    let device = Device::with_wire(DeviceConfig::default(), Arc::new(second)).unwrap();
    // A datagram that the process does not read does not lose its own.
    device.send_datagram(0, &[b"unread"]).unwrap();
    first.send(1, message(&[&[&[0][..], b"last words"].concat()]));
    drop(first);
    let mut received = Vec::new();
    while !device.is_lost(0) {
        device.progress_and(|from, bytes| received.push((from, bytes.to_vec()))).unwrap();
    }
    assert_eq!(received, [(0, b"last words".to_vec())]);
}
