//! Requests of a queue pair take effect and complete in order, and a polled completion makes all
//! writes before it visible.

use std::{sync::atomic::Ordering, thread};

use crate::common::*;
use ibverbs_sim::*;

#[test]
fn requests_complete_in_the_order_of_posting() {
    let (a, b) = pair();
    let (local, remote) = (a.buffer(8), b.buffer(8));
    b.receives(0..2);
    let at = remote.region.at(0);
    let list = [local.all()];
    a.post(&[
        request(1, Operation::Write { remote: at }, Payload::Inline(b"12345678")),
        request(2, Operation::Read { remote: at }, Payload::Gather(&list)),
        request(3, Operation::Send, Payload::Inline(b"")),
        request(4, Operation::FetchAdd { remote: at, add: 0 }, Payload::Gather(&list)),
        request(
            5,
            Operation::WriteWithImmediate { remote: at, immediate: 1 },
            Payload::Inline(b""),
        ),
    ]);
    assert_eq!(local.bytes(), b"12345678");
    assert_eq!(a.sent().iter().map(|sent| sent.wr_id).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(b.received().iter().map(|got| got.wr_id).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_notified_write_comes_after_its_data_and_all_data_before_it() {
    const ROUNDS: u64 = 20_000;
    let (a, b) = pair();
    let rounds = a.site.rounds(ROUNDS);
    let target = b.buffer(24 * rounds as usize);
    b.receives(0..1);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..rounds {
                let bytes = [!round; 2].map(u64::to_ne_bytes).concat();
                let start = round as usize * 24;
                let first = Operation::Write { remote: target.region.at(start) };
                let remote = target.region.at(start + 16);
                let second = Operation::WriteWithImmediate { remote, immediate: round as u32 };
                a.post(&[
                    unsignalled(0, first, Payload::Inline(&bytes)),
                    request(0, second, Payload::Inline(&bytes[..8])),
                ]);
                a.wait_sent(1);
            }
        });
        let mut completion = [WorkCompletion::default()];
        for round in 0..rounds {
            while b.recv_cq.poll(&mut completion) == 0 {
                b.settle();
                thread::yield_now();
            }
            assert_eq!(completion[0].immediate, Some(round as u32));
            for index in 0..3 {
                let word = target.word(3 * round as usize + index);
                assert_eq!(word.load(Ordering::Relaxed), !round);
            }
            b.receives(0..1);
        }
    });
}

#[test]
fn the_last_word_of_a_write_comes_after_all_others() {
    const ROUNDS: u64 = 20_000;
    let (a, b) = pair();
    let rounds = a.site.rounds(ROUNDS);
    let target = b.buffer(64 * rounds as usize);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..rounds {
                let bytes = [!round; 8].map(u64::to_ne_bytes).concat();
                let remote = target.region.at(round as usize * 64);
                let write = Operation::Write { remote };
                a.post(&[request(0, write, Payload::Inline(&bytes))]);
                a.wait_sent(1);
            }
        });
        for round in 0..rounds as usize {
            while target.word(round * 8 + 7).load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            for index in 0..8 {
                let word = target.word(round * 8 + index).load(Ordering::Relaxed);
                assert_eq!(word, !(round as u64), "word {index} of write {round}");
            }
        }
    });
}
