//! Any thread may post to any queue pair, and the requests of each thread keep their order.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::common::*;
use ibverbs_sim::*;

const THREADS: u64 = 3;
const ROUNDS: u64 = 4_000;

#[test]
fn every_thread_keeps_its_order_on_every_queue_pair() {
    let device = device();
    let a = End::new(&device, |_| {});
    let b = End::new(&device, |_| {});
    let init = QueuePairInit::new(&a.send_cq, &a.send_cq);
    let far = QueuePairInit::new(&b.recv_cq, &b.recv_cq);
    let pairs: Vec<_> = (0..2)
        .map(|_| {
            let near = a.domain.create_queue_pair(&init).unwrap();
            let far = b.domain.create_queue_pair(&far).unwrap();
            b.site.connect(&far, &near, &Connection::default());
            a.site.connect(&near, &far, &Connection::default());
            (near, far)
        })
        .collect();
    let rounds = a.site.rounds(ROUNDS);
    let total = THREADS * rounds * 2;
    let receive = ReceiveWorkRequest { wr_id: 0, scatter: &[] };
    thread::scope(|scope| {
        for poster in 0..THREADS {
            let (a, pairs) = (&a, &pairs);
            scope.spawn(move || {
                for round in 0..rounds {
                    let immediate = (poster << 24 | round) as u32;
                    let operation = Operation::SendWithImmediate { immediate };
                    for (near, _) in pairs {
                        let post = [request(immediate.into(), operation, Payload::Inline(b""))];
                        while near.post_send(&post).is_err() {
                            a.sent();
                            thread::yield_now();
                        }
                    }
                }
            });
        }
        let mut next = [[0; THREADS as usize]; 2];
        for (_, far) in &pairs {
            far.post_receive(&[receive; 64]).unwrap();
        }
        let mut seen = 0;
        while seen < total {
            a.sent();
            for got in b.received() {
                let which = pairs.iter().position(|(_, far)| far.number() == got.queue_pair);
                let which = which.unwrap();
                let immediate = got.immediate.unwrap();
                let expected = &mut next[which][(immediate >> 24) as usize];
                assert_eq!(immediate & 0xff_ffff, *expected);
                *expected += 1;
                seen += 1;
                pairs[which].1.post_receive(&[receive]).unwrap();
            }
        }
    });
}

#[test]
fn a_post_behind_a_long_copy_is_carried_out_by_whoever_copies() {
    let (a, b) = pair();
    // Over a rail messages are shorter.
    let length = a.context.query_device().max_message_size.min(8 << 20) as usize;
    let (source, target) = (a.buffer(length), b.buffer(length));
    let word = b.buffer(8);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let list = [source.all()];
            let operation = Operation::Write { remote: target.region.at(0) };
            for _ in 0..40 {
                let copy = [request(1, operation, Payload::Gather(&list))];
                while a.try_post(&copy).is_err() {
                    a.sent();
                }
            }
            done.store(true, Ordering::SeqCst);
        });
        let operation = Operation::Write { remote: word.region.at(0) };
        while !done.load(Ordering::SeqCst) {
            let posted = a.try_post(&[request(2, operation, Payload::Inline(b"x"))]);
            if posted.is_err() {
                thread::yield_now();
            }
        }
    });
    // A rail may still move the data of the last ones.
    while !a.queue_pair.is_drained() {
        a.sent();
    }
    a.sent();
    a.post(&[request(
        3,
        Operation::Read { remote: word.region.at(0) },
        Payload::Gather(&[source.region.slice(0, 8)]),
    )]);
    assert_eq!(statuses(&a.sent()), [(3, CompletionStatus::Success)]);
    assert_eq!(&source.bytes()[..8], b"x\0\0\0\0\0\0\0");
}
