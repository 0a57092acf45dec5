//! Inline bytes are copied when posted, up to the limit, and never returned data.

use crate::common::*;
use ibverbs_sim::*;

#[test]
fn the_limit_holds_on_both_sides() {
    let device = device();
    let a = End::new(&device, |init| init.max_inline_data = 10);
    let b = End::new(&device, |_| {});
    connect(&a, &b, &Connection::default());
    let target = b.buffer(16);
    let operation = Operation::Write { remote: target.region.at(0) };
    a.post(&[request(1, operation, Payload::Inline(b"0123456789"))]);
    assert_eq!(&target.bytes()[..12], b"0123456789\0\0");
    let refused = a.try_post(&[request(2, operation, Payload::Inline(&[0; 11]))]);
    let reason = Error::LimitExceeded { what: "max_inline_data", requested: 11, limit: 10 };
    assert_eq!(refused, Err(PostError { index: 0, reason }));
}

#[test]
fn the_bytes_may_change_after_posting_even_if_the_request_waits() {
    let (a, b) = pair();
    let target = b.buffer(8);
    let mut bytes = *b"before";
    a.post(&[request(1, Operation::Send, Payload::Inline(&bytes))]);
    bytes.copy_from_slice(b"after!");
    b.receive(1, &[target.all()]);
    assert_eq!(target.bytes(), b"before\0\0");
}

#[test]
fn no_data_is_returned_to_inline_bytes() {
    let (a, b) = pair();
    let remote = b.buffer(8).region.at(0);
    for operation in [
        Operation::Read { remote },
        Operation::FetchAdd { remote, add: 0 },
        Operation::CompareSwap { remote, compare: 0, swap: 0 },
    ] {
        let requests = [request(1, operation, Payload::Inline(&[0; 8]))];
        let reason = Error::InlineTarget;
        assert_eq!(a.try_post(&requests), Err(PostError { index: 0, reason }));
    }
    assert_eq!(a.queue_pair.state(), QueuePairState::ReadyToSend);
}
