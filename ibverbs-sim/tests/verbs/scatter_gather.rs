//! Lists are gathered and scattered in order, regardless of the lengths of their pieces.

use crate::common::*;
use ibverbs_sim::*;

fn ends() -> (End, End) {
    let device = device();
    let wide = |init: &mut QueuePairInit| {
        (init.max_send_sge, init.max_recv_sge) = (16, 16);
    };
    let ends = (End::new(&device, wide), End::new(&device, wide));
    connect(&ends.0, &ends.1, &Connection::default());
    ends
}

#[test]
fn pieces_of_both_sides_need_not_match() {
    let (a, b) = ends();
    let (source, target) = (a.buffer(32), b.buffer(32));
    source.fill(b"abcdefghijklmnopqrstuvwxyz");
    let gather = [source.region.slice(20, 5), source.region.slice(0, 0), source.region.slice(0, 7)];
    let scatter =
        [target.region.slice(8, 3), target.region.slice(0, 4), target.region.slice(16, 16)];
    b.receive(1, &scatter);
    a.post(&[request(1, Operation::Send, Payload::Gather(&gather))]);
    assert_eq!(&target.bytes()[..24], b"xyab\0\0\0\0uvw\0\0\0\0\0cdefg\0\0\0");
    assert_eq!(b.received()[0].byte_len, 12);
}

#[test]
fn inline_data_is_scattered() {
    let (a, b) = ends();
    let target = b.buffer(16);
    b.receive(1, &[target.region.slice(4, 2), target.region.slice(0, 4)]);
    a.post(&[request(1, Operation::Send, Payload::Inline(b"12345"))]);
    assert_eq!(&target.bytes()[..7], b"345\x0012\0");
}

#[test]
fn write_gathers_and_read_scatters() {
    let (a, b) = ends();
    let (local, remote) = (a.buffer(16), b.buffer(16));
    local.fill(b"0123456789abcdef");
    let list = [local.region.slice(10, 3), local.region.slice(1, 2)];
    let write = Operation::Write { remote: remote.region.at(1) };
    let read = Operation::Read { remote: remote.region.at(0) };
    let into = [local.region.slice(15, 1), local.region.slice(0, 5)];
    a.post(&[request(1, write, Payload::Gather(&list)), request(2, read, Payload::Gather(&into))]);
    assert_eq!(&remote.bytes()[..8], b"\0abc12\0\0");
    assert_eq!(local.bytes(), b"abc1256789abcde\0");
}

#[test]
fn the_longest_list_fits_and_one_more_is_refused() {
    let (a, b) = ends();
    let (source, target) = (a.buffer(16), b.buffer(16));
    source.fill(b"0123456789abcdef");
    let list = |buffer: &Buffer, count: usize| -> Vec<_> {
        (0..count).map(|at| buffer.region.slice(at % 16, 1)).collect()
    };
    b.receive(1, &list(&target, 16));
    a.post(&[request(1, Operation::Send, Payload::Gather(&list(&source, 16)))]);
    assert_eq!(target.bytes(), b"0123456789abcdef");
    let refused = |error: PostError| {
        matches!(error.reason, Error::LimitExceeded { requested: 17, limit: 16, .. })
    };
    let long = list(&source, 17);
    let too_long = [send(2), request(3, Operation::Send, Payload::Gather(&long))];
    b.receives(2..3);
    let error = a.try_post(&too_long).unwrap_err();
    assert_eq!(error.index, 1);
    assert!(refused(error));
    let receives = [ReceiveWorkRequest { wr_id: 4, scatter: &long }];
    assert!(refused(b.queue_pair.post_receive(&receives).unwrap_err()));
    assert_eq!(a.sent().len(), 2);
}
