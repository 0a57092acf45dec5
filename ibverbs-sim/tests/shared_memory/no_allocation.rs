//! Requests between processes allocate no memory.

use crate::{common::*, connected_pair::ConnectedPair, counting_allocator::peak_during};
use ibverbs_sim::*;

#[test]
fn requests_allocate_nothing_once_their_queues_have_grown() {
    let connection = Connection { timeout_ns: 0, ..Connection::default() };
    let pair = ConnectedPair::with(&connection, |_| {});
    let (local, remote) = (pair.a.buffer(4096), pair.b.buffer(4096));
    let mut completions = [WorkCompletion::default(); 8];
    let mut round = || {
        let (all, word) = ([local.all()], [local.region.slice(0, 8)]);
        let write = Operation::WriteWithImmediate { remote: remote.region.at(0), immediate: 1 };
        let read = Operation::Read { remote: remote.region.at(0) };
        let add = Operation::FetchAdd { remote: remote.region.at(0), add: 1 };
        pair.b.receives(0..2);
        pair.a.post(&[
            request(0, write, Payload::Gather(&all)),
            request(1, Operation::Send, Payload::Inline(b"")),
            request(2, read, Payload::Gather(&all)),
            request(3, add, Payload::Gather(&word)),
        ]);
        pair.settle();
        assert_eq!(pair.a.send_cq.poll(&mut completions), 4);
        assert!(completions[..4].iter().all(|sent| sent.status == CompletionStatus::Success));
        assert_eq!(pair.b.recv_cq.poll(&mut completions), 2);
    };
    (0..100).for_each(|_| round());
    assert_eq!(peak_during(|| (0..100).for_each(|_| round())), 0);
}
