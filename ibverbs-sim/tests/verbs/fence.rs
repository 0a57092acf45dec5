//! A fenced request sees the data that earlier READs and atomics returned.

use crate::common::*;
use ibverbs_sim::*;

#[test]
fn a_fenced_send_carries_the_data_of_the_read_before_it() {
    let (a, b) = pair();
    let (local, remote) = (a.buffer(16), b.buffer(16));
    remote.fill(b"fresh!!!");
    let (first, second) = ([local.region.slice(0, 8)], [local.region.slice(8, 8)]);
    let read = Operation::Read { remote: remote.region.at(0) };
    let add = Operation::FetchAdd { remote: remote.region.at(8), add: 5 };
    let target = b.buffer(16);
    b.receive(0, &[target.all()]);
    let both = [local.all()];
    let fenced = SendWorkRequest {
        flags: SendFlags::SIGNALLED | SendFlags::FENCE,
        ..request(3, Operation::Send, Payload::Gather(&both))
    };
    a.post(&[
        unsignalled(1, read, Payload::Gather(&first)),
        unsignalled(2, add, Payload::Gather(&second)),
        fenced,
    ]);
    assert_eq!(&target.bytes()[..], b"fresh!!!\0\0\0\0\0\0\0\0");
    assert_eq!(statuses(&a.sent()), [(3, CompletionStatus::Success)]);
}

#[test]
fn a_fence_holds_although_the_link_delays_the_read() {
    let plan =
        FaultPlan { seed: 3, delay_ppm: 1_000_000, max_delay_ns: 50, ..FaultPlan::default() };
    let (a, b) = pair_on(&faulty(plan), &Connection::default());
    let (local, remote) = (a.buffer(8), b.buffer(16));
    remote.fill(b"fresh!!!");
    let list = [local.all()];
    let read = Operation::Read { remote: remote.region.at(0) };
    let write = Operation::Write { remote: remote.region.at(8) };
    let flags = SendFlags::SIGNALLED | SendFlags::FENCE;
    a.post(&[
        request(1, read, Payload::Gather(&list)),
        SendWorkRequest { flags, ..request(2, write, Payload::Gather(&list)) },
    ]);
    assert!(a.sent().is_empty());
    a.advance(50);
    a.advance(100);
    assert_eq!(a.sent().len(), 2);
    assert_eq!(remote.bytes(), b"fresh!!!fresh!!!");
}
