//! Faults of requests to another process, of which several are under way.

use std::sync::atomic::Ordering;

use crate::common::*;
use ibverbs_sim::*;

const ALWAYS: u32 = 1_000_000;
const SUCCESS: CompletionStatus = CompletionStatus::Success;

fn short_timeout() -> Connection {
    Connection { timeout_ns: 100, retry_count: 7, ..Connection::default() }
}

/// Returns a plan with all kinds of faults, each at one in `one_in` attempts.
fn plan(seed: u64, one_in: u32) -> FaultPlan {
    let chance = ALWAYS / one_in;
    FaultPlan {
        seed,
        drop_request_ppm: chance,
        drop_response_ppm: chance,
        duplicate_ppm: chance,
        delay_ppm: chance,
        max_delay_ns: 300,
        reorder_ppm: chance,
    }
}

/// Advances the time until no request waits for it.
fn end_all(end: &End) {
    end.settle();
    while let Some(deadline) = end.context.next_deadline_ns() {
        end.advance(deadline);
    }
}

#[test]
fn requests_of_one_post_take_effect_once_and_in_order() {
    const ROUNDS: usize = 12;
    for seed in 0..20 {
        for one_in in [8, 16] {
            let (a, b) = pair_on(&faulty(plan(seed, one_in)), &short_timeout());
            let (values, words) = (a.buffer(16 * ROUNDS), b.buffer(8 * (ROUNDS + 1)));
            b.receives(0..2 * ROUNDS as u64);
            let counter = words.region.at(0);
            let add = Operation::FetchAdd { remote: counter, add: 1 };
            for round in 0..ROUNDS {
                let bytes = (round as u64 + 7).to_ne_bytes();
                let remote = words.region.at(8 * (round + 1));
                let immediate = round as u32;
                let (number, read) = (16 * round, 16 * round + 8);
                let lists = [[values.region.slice(number, 8)], [values.region.slice(read, 8)]];
                // Without `post`, which would wait for the packets of these.
                let posted = a.queue_pair.post_send(&[
                    send(0),
                    request(1, Operation::Write { remote }, Payload::Inline(&bytes)),
                    request(2, add, Payload::Gather(&lists[0])),
                    request(3, Operation::Read { remote }, Payload::Gather(&lists[1])),
                    request(
                        4,
                        Operation::WriteWithImmediate { remote, immediate },
                        Payload::Inline(b"x"),
                    ),
                ]);
                posted.unwrap();
            }
            end_all(&a);
            let expected = (0..5 * ROUNDS as u64).map(|nth| (nth % 5, SUCCESS));
            assert!(statuses(&a.sent()).into_iter().eq(expected));
            let received = b.received();
            assert!(received.iter().map(|got| got.wr_id).eq(0..2 * ROUNDS as u64));
            let immediates = received.iter().filter_map(|got| got.immediate);
            assert!(immediates.eq(0..ROUNDS as u32));
            assert_eq!(words.word(0).load(Ordering::SeqCst), ROUNDS as u64);
            for round in 0..ROUNDS {
                assert_eq!(values.word(2 * round).load(Ordering::SeqCst), round as u64);
                assert_eq!(values.word(2 * round + 1).load(Ordering::SeqCst), round as u64 + 7);
                let bytes = words.word(round + 1).load(Ordering::SeqCst).to_ne_bytes();
                assert_eq!(bytes[0], b'x');
            }
        }
    }
}

#[test]
fn retries_run_out_for_the_oldest_of_those_under_way() {
    let drops = FaultPlan { seed: 1, drop_request_ppm: ALWAYS, ..FaultPlan::default() };
    let loses = FaultPlan { seed: 2, drop_response_ppm: ALWAYS, ..FaultPlan::default() };
    for (plan, arrived) in [(drops, 0), (loses, 3)] {
        let (a, b) = pair_on(&faulty(plan), &short_timeout());
        b.receives(0..3);
        a.post(&[send(1), send(2), send(3)]);
        a.advance(799);
        assert!(a.sent().is_empty());
        a.advance(800);
        let flushed = CompletionStatus::WorkRequestFlushed;
        let expected = [(1, CompletionStatus::RetryExceeded), (2, flushed), (3, flushed)];
        assert_eq!(statuses(&a.sent()), expected);
        assert_eq!(b.received().len(), arrived);
    }
}

#[test]
fn a_refusal_ends_those_before_it_whose_responses_are_lost() {
    let plan = FaultPlan { seed: 1, drop_response_ppm: ALWAYS, ..FaultPlan::default() };
    let (a, b) = pair_on(&faulty(plan), &short_timeout());
    b.receives(0..1);
    let bad = Operation::Write { remote: RemoteAddress::default() };
    a.post(&[send(1), request(2, bad, Payload::Inline(b"x"))]);
    assert_eq!(statuses(&a.sent()), [(1, SUCCESS), (2, CompletionStatus::RemoteAccess)]);
}

#[test]
fn a_bad_link_does_not_keep_requests_from_being_under_way_together() {
    let plan = FaultPlan { seed: 3, duplicate_ppm: ALWAYS, ..FaultPlan::default() };
    let devices = faulty(plan);
    let (a, b) = pair_on(&devices, &short_timeout());
    b.receives(0..8);
    let before = devices.packets_from_the_first();
    a.queue_pair.post_send(&[send(0); 8]).unwrap();
    assert_eq!(devices.packets_from_the_first() - before, 16);
    assert_eq!((a.sent().len(), b.received().len()), (8, 8));
}

#[test]
fn no_data_overtakes_its_packet_where_memory_is_mapped() {
    let plan = FaultPlan { seed: 4, duplicate_ppm: ALWAYS, ..FaultPlan::default() };
    let devices = faulty(plan);
    let (a, b) = pair_on(&devices, &short_timeout());
    assert!(!devices.maps_from_the_first());
    let (local, remote) = (a.buffer(8), b.buffer(8192));
    b.receives(0..1);
    a.post(&[send(1)]);
    let write = Operation::Write { remote: remote.region.at(0) };
    a.queue_pair.post_send(&[request(2, write, Payload::Inline(b"12345678"))]).unwrap();
    let add = Operation::FetchAdd { remote: remote.region.at(8), add: 1 };
    a.queue_pair.post_send(&[request(3, add, Payload::Gather(&[local.all()]))]).unwrap();
    assert_eq!(&remote.bytes()[..16], [0; 16]);
    assert_eq!(statuses(&a.sent()), [(1, SUCCESS), (2, SUCCESS), (3, SUCCESS)]);
    assert_eq!(&remote.bytes()[..16], b"12345678\x01\0\0\0\0\0\0\0");
}

/// Returns the times at which sends end, one after the other.
fn course(a: &End, b: &End) -> Vec<u64> {
    let mut now_ns = 0;
    let until_sent = |wr_id| {
        b.receives(wr_id..wr_id + 1);
        a.post(&[send(wr_id)]);
        let mut sent = a.sent();
        while sent.is_empty() {
            now_ns = a.context.next_deadline_ns().unwrap();
            a.advance(now_ns);
            sent = a.sent();
        }
        assert_eq!(statuses(&sent), [(wr_id, SUCCESS)]);
        now_ns
    };
    (0..200).map(until_sent).collect()
}

#[test]
fn the_course_of_events_is_that_within_a_process() {
    for seed in 0..10 {
        let config = DeviceConfig { fault: Some(plan(seed, 8)), ..DeviceConfig::default() };
        let device = Device::new(config).unwrap();
        let (a, b) = (End::new(&device, |_| {}), End::new(&device, |_| {}));
        connect(&a, &b, &short_timeout());
        let (c, d) = pair_on(&faulty(plan(seed, 8)), &short_timeout());
        assert_eq!(a.queue_pair.number(), c.queue_pair.number());
        assert_eq!(course(&a, &b), course(&c, &d));
    }
}
