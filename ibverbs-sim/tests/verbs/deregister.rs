//! No thread touches the memory of a region after its drop.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use crate::common::*;
use ibverbs_sim::*;

#[test]
fn it_waits_for_copies_under_way() {
    const LENGTH: usize = 1 << 20;
    for round in 0..20 {
        let (a, b) = pair();
        let (source, target) = (a.buffer(LENGTH), b.buffer(LENGTH));
        source.word(0).store(1, Ordering::SeqCst);
        source.word(LENGTH / 8 - 1).store(1, Ordering::SeqCst);
        let started = AtomicU64::new(0);
        let remote = target.region.at(0);
        thread::scope(|scope| {
            let copier = scope.spawn(|| {
                let list = [source.all()];
                loop {
                    started.fetch_add(1, Ordering::SeqCst);
                    a.post(&[request(1, Operation::Write { remote }, Payload::Gather(&list))]);
                    let status = a.wait_sent(1)[0].status;
                    if status != CompletionStatus::Success {
                        return status;
                    }
                }
            });
            while started.load(Ordering::SeqCst) <= round % 3 {
                thread::yield_now();
            }
            let memory = target.deregister();
            memory.iter().for_each(|word| word.store(0, Ordering::SeqCst));
            assert_eq!(copier.join().unwrap(), CompletionStatus::RemoteAccess);
            assert!(memory.iter().all(|word| word.load(Ordering::SeqCst) == 0));
        });
    }
}

#[test]
fn a_waiting_request_finds_its_local_key_refused() {
    let (a, b) = pair();
    let source = a.buffer(8);
    let list = [source.all()];
    a.post(&[request(1, Operation::Send, Payload::Gather(&list))]);
    let memory = source.deregister();
    let target = b.buffer(8);
    b.receive(1, &[target.all()]);
    assert_eq!(statuses(&a.sent()), [(1, CompletionStatus::LocalProtection)]);
    drop(memory);
}

#[test]
fn a_posted_receive_finds_its_key_refused() {
    let (a, b) = pair();
    let target = b.buffer(8);
    b.receive(1, &[target.all()]);
    let memory = target.deregister();
    a.post(&[request(1, Operation::Send, Payload::Inline(b"x"))]);
    assert_eq!(statuses(&a.sent()), [(1, CompletionStatus::RemoteOperation)]);
    assert_eq!(statuses(&b.received()), [(1, CompletionStatus::LocalProtection)]);
    assert_eq!(memory[0].load(Ordering::SeqCst), 0);
}
