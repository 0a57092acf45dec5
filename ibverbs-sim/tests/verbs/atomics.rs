//! Atomics on one word from any queue pair of the device happen one after another.

use std::{sync::atomic::Ordering, thread};

use crate::common::*;
use ibverbs_sim::*;

const THREADS: usize = 4;
const ROUNDS: u64 = 5_000;

#[test]
fn no_addition_is_lost_and_no_ticket_given_twice() {
    let device = device();
    let owner = End::new(&device, |_| {});
    let rounds = owner.site.rounds(ROUNDS);
    let word = owner.buffer(8);
    let remote = word.region.at(0);
    let mut tickets: Vec<u64> = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let init = QueuePairInit::new(&owner.send_cq, &owner.recv_cq);
                    let peer = owner.domain.create_queue_pair(&init).unwrap();
                    let end = End::new(&device, |_| {});
                    owner.site.connect(&peer, &end.queue_pair, &Connection::default());
                    end.site.connect(&end.queue_pair, &peer, &Connection::default());
                    let result = end.buffer(8);
                    let list = [result.all()];
                    let add = Operation::FetchAdd { remote, add: 1 };
                    let mut seen = Vec::new();
                    for _ in 0..rounds {
                        end.post(&[request(0, add, Payload::Gather(&list))]);
                        assert_eq!(end.wait_sent(1)[0].status, CompletionStatus::Success);
                        seen.push(result.word(0).load(Ordering::Relaxed));
                        // Local atomics on the same word are part of the order.
                        word.word(0).fetch_add(1 << 32, Ordering::Relaxed);
                    }
                    seen
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let total = THREADS as u64 * rounds;
    assert_eq!(word.word(0).load(Ordering::SeqCst), total << 32 | total);
    tickets.iter_mut().for_each(|ticket| *ticket &= u64::from(u32::MAX));
    tickets.sort_unstable();
    assert!(tickets.into_iter().eq(0..total));
}

#[test]
fn a_misaligned_word_is_an_invalid_request() {
    for offset in 1..8 {
        let (a, b) = pair();
        let (result, word) = (a.buffer(8), b.buffer(16));
        let operation = Operation::FetchAdd { remote: word.region.at(offset), add: 1 };
        a.post(&[request(1, operation, Payload::Gather(&[result.all()]))]);
        assert_eq!(a.sent()[0].status, CompletionStatus::RemoteInvalidRequest);
        let event = AsyncEvent::QueuePairRequestError { queue_pair: b.queue_pair.number() };
        assert_eq!(b.context.poll_async_event(), Some(event));
        assert_eq!(word.bytes(), [0; 16]);
    }
}

#[test]
fn no_read_or_atomic_passes_where_none_may_be_outstanding() {
    let none = Connection { max_rd_atomic: 0, ..Connection::default() };
    for (near, far, expected) in [
        (&none, &Connection::default(), CompletionStatus::LocalQueuePairOperation),
        (&Connection::default(), &none, CompletionStatus::RemoteInvalidRequest),
    ] {
        for which in 0..2 {
            let device = device();
            let (a, b) = (End::new(&device, |_| {}), End::new(&device, |_| {}));
            a.connect(&b, near);
            b.connect(&a, far);
            let (local, target) = (a.buffer(8), b.buffer(8));
            let remote = target.region.at(0);
            let operations = [
                Operation::Read { remote },
                Operation::CompareSwap { remote, compare: 0, swap: 1 },
            ];
            a.post(&[request(1, operations[which], Payload::Gather(&[local.all()]))]);
            assert_eq!(a.sent()[0].status, expected);
        }
    }
}
