//! A queue pair makes only the transitions of verbs, each with the attributes that it needs.

use crate::common::*;
use ibverbs_sim::{QueuePairState::*, *};

fn init() -> QueuePairAttributes {
    QueuePairAttributes {
        port: Some(1),
        access: Some(Access::ALL),
        ..QueuePairAttributes::new(Init)
    }
}

fn receive(remote: QueuePairNumber) -> QueuePairAttributes {
    QueuePairAttributes {
        remote: Some(remote),
        receive_psn: Some(0),
        max_dest_rd_atomic: Some(1),
        min_rnr_timer_ns: Some(1),
        ..QueuePairAttributes::new(ReadyToReceive)
    }
}

fn ready() -> QueuePairAttributes {
    QueuePairAttributes {
        send_psn: Some(0),
        timeout_ns: Some(1),
        retry_count: Some(7),
        rnr_retry: Some(7),
        max_rd_atomic: Some(1),
        ..QueuePairAttributes::new(ReadyToSend)
    }
}

#[test]
fn the_way_from_reset_to_ready_and_back() {
    let end = End::new(&device(), |_| {});
    let queue_pair = &end.queue_pair;
    assert_eq!(queue_pair.state(), Reset);
    for attributes in [init(), init(), receive(queue_pair.number()), ready()] {
        queue_pair.modify(&attributes).unwrap();
        assert_eq!(queue_pair.state(), attributes.state);
    }
    let again = QueuePairAttributes {
        access: Some(Access::NONE),
        min_rnr_timer_ns: Some(5),
        ..QueuePairAttributes::new(ReadyToSend)
    };
    queue_pair.modify(&again).unwrap();
    end.go_to(Error);
    end.go_to(Error);
    end.go_to(Reset);
    assert_eq!(queue_pair.state(), Reset);
    queue_pair.modify(&init()).unwrap();
}

#[test]
fn steps_are_not_skipped_or_taken_back() {
    let end = End::new(&device(), |_| {});
    let queue_pair = &end.queue_pair;
    let number = queue_pair.number();
    let refused = |attributes: &QueuePairAttributes, from| {
        let expected = ibverbs_sim::Error::InvalidTransition {
            queue_pair: number,
            from,
            to: attributes.state,
        };
        assert_eq!(queue_pair.modify(attributes), Err(expected));
        assert_eq!(queue_pair.state(), from);
    };
    refused(&receive(number), Reset);
    refused(&ready(), Reset);
    refused(&QueuePairAttributes::new(Error), Reset);
    queue_pair.modify(&init()).unwrap();
    refused(&ready(), Init);
    queue_pair.modify(&receive(number)).unwrap();
    refused(&init(), ReadyToReceive);
    refused(&receive(number), ReadyToReceive);
    queue_pair.modify(&ready()).unwrap();
    refused(&init(), ReadyToSend);
    refused(&receive(number), ReadyToSend);
    end.go_to(Error);
    refused(&init(), Error);
    refused(&ready(), Error);
}

#[test]
fn attributes_are_neither_missing_nor_superfluous() {
    let end = End::new(&device(), |_| {});
    let queue_pair = &end.queue_pair;
    let missing = QueuePairAttributes { access: None, ..init() };
    assert_eq!(
        queue_pair.modify(&missing),
        Err(ibverbs_sim::Error::MissingAttribute { to: Init, attribute: "access" })
    );
    let superfluous = QueuePairAttributes { send_psn: Some(1), ..init() };
    assert_eq!(
        queue_pair.modify(&superfluous),
        Err(ibverbs_sim::Error::UnexpectedAttribute { to: Init, attribute: "send_psn" })
    );
    let other_port = QueuePairAttributes { port: Some(2), ..init() };
    assert_eq!(
        queue_pair.modify(&other_port),
        Err(ibverbs_sim::Error::NoSuchPort { port: 2, ports: 1 })
    );
    assert_eq!(queue_pair.state(), Reset);
}

#[test]
fn posting_needs_the_right_state() {
    let end = End::new(&device(), |_| {});
    let queue_pair = &end.queue_pair;
    let receive_wr = [ReceiveWorkRequest { wr_id: 0, scatter: &[] }];
    let state_error = |error: PostError| {
        matches!(error, PostError { index: 0, reason: ibverbs_sim::Error::InvalidState { .. } })
    };
    assert!(state_error(queue_pair.post_receive(&receive_wr).unwrap_err()));
    assert!(state_error(queue_pair.post_send(&[send(0)]).unwrap_err()));
    queue_pair.modify(&init()).unwrap();
    queue_pair.post_receive(&receive_wr).unwrap();
    assert!(state_error(queue_pair.post_send(&[send(0)]).unwrap_err()));
    queue_pair.modify(&receive(queue_pair.number())).unwrap();
    assert!(state_error(queue_pair.post_send(&[send(0)]).unwrap_err()));
    queue_pair.modify(&ready()).unwrap();
    queue_pair.post_send(&[send(0)]).unwrap();
}

#[test]
fn reset_discards_and_the_pair_works_again() {
    let (a, b) = pair();
    a.post(&[send(1), send(2)]);
    a.go_to(Reset);
    b.go_to(Reset);
    connect(&a, &b, &Connection::default());
    b.receives(0..1);
    assert!(b.received().is_empty() && a.sent().is_empty());
    a.post(&[send(3)]);
    assert_eq!(statuses(&a.sent()), [(3, CompletionStatus::Success)]);
    assert_eq!(b.received().len(), 1);
}
