//! Datagrams arrive whole and in order, and before what is sent after them.

use crate::common::*;
use crate::two::Two;

#[test]
fn datagrams_keep_their_order_and_their_sender() {
    let two = Two::new();
    for text in ["", "one", "two"] {
        two.device(0).send_datagram(1, text.as_bytes()).unwrap();
    }
    assert_eq!(two.device(1).receive_datagram(), None);
    two.settle();
    let received: Vec<_> = std::iter::from_fn(|| two.device(1).receive_datagram()).collect();
    assert_eq!(received, [(0, b"".to_vec()), (0, b"one".to_vec()), (0, b"two".to_vec())]);
}

#[test]
fn a_request_does_not_overtake_a_datagram() {
    let two = Two::new();
    two.b.receives(0..1);
    two.device(0).send_datagram(1, b"first").unwrap();
    two.a.post(&[send(1)]);
    while two.b.received().is_empty() {
        two.device(1).progress().unwrap();
    }
    assert_eq!(two.device(1).receive_datagram(), Some((0, b"first".to_vec())));
}

#[test]
fn more_than_the_sockets_hold_arrives_in_the_end() {
    let two = Two::new();
    let large = vec![7; 1 << 20];
    for _ in 0..8 {
        two.device(0).send_datagram(1, &large).unwrap();
    }
    assert!(two.device(0).has_unsent());
    two.settle();
    assert!(!two.device(0).has_unsent());
    for _ in 0..8 {
        assert!(two.device(1).receive_datagram().is_some_and(|(_, bytes)| bytes == large));
    }
}
