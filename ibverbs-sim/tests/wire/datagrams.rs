//! Datagrams arrive whole and in order, and before packets that are sent after them.

use crate::common::*;
use crate::connected_pair::ConnectedPair;

#[test]
fn datagrams_keep_their_order_and_their_sender() {
    let pair = ConnectedPair::new();
    for text in ["", "one", "two"] {
        pair.device(0).send_datagram(1, text.as_bytes()).unwrap();
    }
    assert_eq!(pair.device(1).receive_datagram(), None);
    pair.settle();
    let received: Vec<_> = std::iter::from_fn(|| pair.device(1).receive_datagram()).collect();
    assert_eq!(received, [(0, b"".to_vec()), (0, b"one".to_vec()), (0, b"two".to_vec())]);
}

#[test]
fn a_request_does_not_overtake_a_datagram() {
    let pair = ConnectedPair::new();
    pair.b.receives(0..1);
    pair.device(0).send_datagram(1, b"first").unwrap();
    pair.a.post(&[send(1)]);
    while pair.b.received().is_empty() {
        pair.device(1).progress().unwrap();
    }
    assert_eq!(pair.device(1).receive_datagram(), Some((0, b"first".to_vec())));
}

#[test]
fn more_than_the_sockets_hold_arrives_in_the_end() {
    let pair = ConnectedPair::new();
    let large = vec![7; 1 << 20];
    for _ in 0..8 {
        pair.device(0).send_datagram(1, &large).unwrap();
    }
    assert!(pair.device(0).has_unsent());
    pair.settle();
    assert!(!pair.device(0).has_unsent());
    for _ in 0..8 {
        assert!(pair.device(1).receive_datagram().is_some_and(|(_, bytes)| bytes == large));
    }
}
