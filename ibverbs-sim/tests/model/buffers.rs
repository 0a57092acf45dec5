//! Buffers on the way have an end: a process that does not receive holds the ports of others.

use ibverbs_sim::{LinkModel, Network};

use super::run;

const WORD: u64 = 4;

/// Two neighbours send `words` of payload to each other, and each receives only once its message
/// has left, as the blocking calls of rMPI version 1 do. Returns the network in which nothing
/// happens any more, and the number of arrivals.
fn exchange(words: u64, neighbour: u32) -> (Network, usize) {
    let model = LinkModel::profile("raw-gdn-v1").unwrap();
    let mut network = Network::new(model, 16);
    let pairs = [(0, neighbour), (neighbour, 0)];
    pairs.iter().for_each(|&(process, _)| network.close(process));
    let sends = pairs.map(|(from, to)| (from, network.post(0, from, to, words * WORD)));
    let mut arrived = 0;
    while let Some(next_ns) = network.next_ns() {
        network.advance(next_ns, |_| arrived += 1);
        for (process, message) in sends {
            if network.has_left(message) {
                network.open(next_ns, process);
            }
        }
    }
    (network, arrived)
}

#[test]
fn blocking_sends_that_the_buffers_hold_end() {
    // 3 words and the header of 5 fill the 8 words between two neighbours.
    let (network, arrived) = exchange(3, 1);
    assert_eq!((arrived, network.held()), (2, vec![]));
}

#[test]
fn blocking_sends_that_the_buffers_do_not_hold_are_a_deadlock() {
    let (network, arrived) = exchange(4, 1);
    assert_eq!(arrived, 0);
    let held: Vec<_> = network.held().iter().map(|held| (held.from, held.to)).collect();
    assert_eq!(held, [(0, 1), (1, 0)]);
}

#[test]
fn buffers_grow_with_the_distance() {
    // Six hops from corner to corner, 48 words.
    assert_eq!(exchange(41, 15).1, 2);
    assert_eq!(exchange(44, 15).1, 0);
}

#[test]
fn a_message_that_is_held_arrives_once_its_receiver_opens() {
    let model = LinkModel::parse("latency=10ns,bandwidth=1GB/s,buffer=100B").unwrap();
    let mut network = Network::new(model, 3);
    network.close(1);
    let held = network.post(0, 0, 1, 500);
    network.post(0, 0, 2, 50);
    assert_eq!(run(&mut network), []);
    assert!(!network.has_left(held));
    network.open(2_000, 1);
    let times: Vec<_> = run(&mut network).iter().map(|one| (one.to, one.at_ns)).collect();
    // The buffers hold the last 100 bytes, so the port is free 100 ns before the arrival.
    assert_eq!(times, [(2, 2_460), (1, 2_500)]);
    assert_eq!(network.held(), []);
}

#[test]
fn closing_in_the_middle_of_a_message_does_not_hold_it() {
    let model = LinkModel::parse("latency=10ns,bandwidth=1GB/s,buffer=100B").unwrap();
    let mut network = Network::new(model, 2);
    network.post(0, 0, 1, 500);
    network.advance(200, |_| ());
    network.close(1);
    assert_eq!(run(&mut network)[0].at_ns, 510);
}
