//! Datagrams arrive whole and in order, and no later than packets that are sent after them.

use ibverbs_sim::{Device, DeviceConfig, Error};

use crate::common::*;
use crate::connected_pair::ConnectedPair;

#[test]
fn datagrams_keep_their_order_and_their_sender() {
    let pair = ConnectedPair::new();
    for text in ["", "one", "two"] {
        pair.device(0).send_datagram(1, &[text.as_bytes()]).unwrap();
    }
    let mut received = Vec::new();
    while received.len() < 3 {
        let device = pair.device(1);
        device.progress_and(|from, bytes| received.push((from, bytes.to_vec()))).unwrap();
    }
    assert_eq!(received, [(0, b"".to_vec()), (0, b"one".to_vec()), (0, b"two".to_vec())]);
}

#[test]
fn a_request_does_not_overtake_a_datagram() {
    let pair = ConnectedPair::new();
    pair.b.receives(0..1);
    pair.device(0).send_datagram(1, &[b"first"]).unwrap();
    pair.a.post(&[send(1)]);
    let mut datagrams = 0;
    while pair.b.received().is_empty() {
        let taken = pair.device(1).progress_and(|from, bytes| {
            assert_eq!((from, bytes), (0, &b"first"[..]));
            datagrams += 1;
        });
        taken.unwrap();
    }
    assert_eq!(datagrams, 1);
}

#[test]
fn who_takes_a_datagram_may_answer_and_post() {
    let pair = ConnectedPair::new();
    pair.a.receives(0..1);
    pair.device(0).send_datagram(1, &[b"ques", b"tion"]).unwrap();
    let mut answered = false;
    while !answered {
        let taken = pair.device(1).progress_and(|from, _| {
            assert_eq!(pair.device(1).progress(), Ok(0), "this thread makes progress");
            pair.b.post(&[send(1)]);
            pair.device(1).send_datagram(from, &[b"answer"]).unwrap();
            answered = true;
        });
        taken.unwrap();
    }
    let mut answer = Vec::<u8>::new();
    while answer.is_empty() {
        pair.device(1).progress().unwrap();
        pair.device(0).progress_and(|_, bytes| answer.extend(bytes)).unwrap();
    }
    assert_eq!(answer, b"answer");
    assert!(!pair.a.received().is_empty(), "the request was sent before");
}

#[test]
fn a_datagram_to_its_own_process_is_refused() {
    let pair = ConnectedPair::new();
    assert_eq!(pair.device(0).send_datagram(0, &[]), Err(Error::OwnProcess { process: 0 }));
    let alone = Device::new(DeviceConfig::default()).unwrap();
    assert_eq!(alone.send_datagram(0, &[]), Err(Error::OwnProcess { process: 0 }));
}

#[test]
fn more_than_the_sockets_hold_arrives_in_the_end() {
    let pair = ConnectedPair::new();
    let large = vec![7; 1 << 20];
    for _ in 0..8 {
        pair.device(0).send_datagram(1, &[&large]).unwrap();
    }
    assert!(pair.device(0).has_unsent());
    let mut come = 0;
    while come < 8 {
        pair.device(0).progress().unwrap();
        let taken = pair.device(1).progress_and(|_, bytes| {
            assert!(bytes == large);
            come += 1;
        });
        taken.unwrap();
    }
    pair.settle();
    assert!(!pair.device(0).has_unsent());
}
