//! Atomics on one word from several processes, including the owner's, happen one after another.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::common::*;
use ibverbs_sim::*;

const ROUNDS: u64 = 300;

#[test]
fn no_addition_is_lost_and_no_ticket_given_twice() {
    let devices = crate::connected_pair::devices(3);
    let owner = End::new(&devices[0], |_| {});
    let word = owner.buffer(8);
    let add = Operation::FetchAdd { remote: word.region.at(0), add: 1 };
    let init = QueuePairInit::new(&owner.send_cq, &owner.recv_cq);
    let over = AtomicBool::new(false);
    let mut tickets: Vec<u64> = thread::scope(|scope| {
        // Two threads deliver in the process of the word.
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    devices[0].progress().unwrap();
                    thread::yield_now();
                }
            });
        }
        let workers: Vec<_> = (0..3u32)
            .map(|process| {
                let (owner, init, device) = (&owner, &init, &devices[process as usize]);
                scope.spawn(move || {
                    let peer = owner.domain.create_queue_pair(init).unwrap();
                    let end = End::new(device, |_| {});
                    let connection = Connection { timeout_ns: 0, ..Connection::default() };
                    let (here, there) = (end.queue_pair.number(), peer.number());
                    end.queue_pair.connect_to(0, there, &connection).unwrap();
                    peer.connect_to(process, here, &connection).unwrap();
                    let result = end.buffer(8);
                    let mut seen = Vec::new();
                    for _ in 0..ROUNDS {
                        end.post(&[request(0, add, Payload::Gather(&[result.all()]))]);
                        let mut sent = end.sent();
                        while sent.is_empty() {
                            device.progress().unwrap();
                            thread::yield_now();
                            sent = end.sent();
                        }
                        assert_eq!(sent[0].status, CompletionStatus::Success);
                        seen.push(result.word(0).load(Ordering::Relaxed));
                    }
                    seen
                })
            })
            .collect();
        let joined = workers.into_iter().map(thread::ScopedJoinHandle::join);
        let joined: Vec<_> = joined.collect();
        over.store(true, Ordering::SeqCst);
        joined.into_iter().flat_map(Result::unwrap).collect()
    });
    assert_eq!(word.word(0).load(Ordering::SeqCst), 3 * ROUNDS);
    tickets.sort_unstable();
    assert!(tickets.into_iter().eq(0..3 * ROUNDS));
}
