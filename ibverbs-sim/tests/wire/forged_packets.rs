//! Packets of a peer, of any content, change nothing without a right, and cause no panic.

use std::sync::atomic::Ordering;

use proptest::prelude::*;

use crate::{common::*, forger::Scene};
use ibverbs_sim::*;

#[test]
fn no_packet_is_an_error_that_names_the_process() {
    let scene = Scene::new();
    for bytes in [&[][..], &[9], &[1, 2, 3], &[2; 10], &[3; 20]] {
        assert_eq!(scene.arrives(bytes), Err(Error::MalformedPacket { process: 1 }), "{bytes:?}");
    }
    assert_eq!(scene.end.queue_pair.state(), QueuePairState::ReadyToSend);
}

#[test]
fn a_length_that_no_packet_has_loses_the_process() {
    let scene = Scene::new();
    let header = 1u64 | 1 << 8 | 4 << 32;
    let length = MAX_PACKET as u32 + 1;
    let message = [&header.to_le_bytes()[..], &length.to_le_bytes()].concat();
    scene.forger.arriving.lock().push(message);
    assert_eq!(scene.device.progress(), Err(Error::MalformedPacket { process: 1 }));
    assert_eq!(statuses(&scene.end.sent()), [(1, CompletionStatus::RetryExceeded)]);
    assert!(scene.device.is_lost(1));
}

#[test]
fn an_acknowledgement_of_a_read_without_its_data_fails_the_read() {
    let scene = Scene::new();
    scene.end.post(&[send(2)]);
    let mut later = scene.forge_response(b"");
    later[13] = 1;
    scene.arrives(&later).unwrap();
    let expected =
        [(1, CompletionStatus::RemoteOperation), (2, CompletionStatus::WorkRequestFlushed)];
    assert_eq!(statuses(&scene.end.sent()), expected);
}

#[test]
fn a_response_of_another_connection_or_number_ends_nothing() {
    let scene = Scene::new();
    for (at, to) in [(9, 1), (13, 1), (13, 255)] {
        let mut response = scene.forge_response(b"12345678");
        response[at] = to;
        scene.arrives(&response).unwrap();
        assert!(scene.end.sent().is_empty());
    }
    scene.arrives(&scene.forge_response(b"12345678")).unwrap();
    assert_eq!(statuses(&scene.end.sent()), [(1, CompletionStatus::Success)]);
}

#[test]
fn a_read_of_more_than_there_is_allocates_nothing_and_is_refused() {
    for length in [65, 5 << 20, u64::MAX] {
        let scene = Scene::new();
        let RemoteAddress { address, key } = scene.open.region.at(0);
        scene.forger.sent.lock().clear();
        let _ = scene.arrives(&scene.forge(4, address, key.to_u32(), length, b""));
        let sent = scene.forger.sent.lock();
        assert!(sent.iter().all(|answer| answer.len() < 40), "length {length}");
    }
}

#[test]
fn a_read_that_says_it_is_repeated_needs_the_right_as_well() {
    let scene = Scene::new();
    scene.closed.fill(&[7; 64]);
    scene.arrives(&scene.forge(0, 0, 0, 2, b"ab")).unwrap();
    for (buffer, is_readable) in [(&scene.closed, false), (&scene.open, true)] {
        let RemoteAddress { address, key } = buffer.region.at(0);
        scene.forger.sent.lock().clear();
        scene.arrives(&scene.forge(4, address, key.to_u32(), 64, b"")).unwrap();
        let sent = scene.forger.sent.lock();
        assert_eq!(sent.iter().any(|response| response.len() > 64), is_readable);
        assert!(!sent.iter().any(|response| response.ends_with(&[7; 64])));
    }
    assert_eq!(scene.end.queue_pair.state(), QueuePairState::ReadyToSend);
}

#[test]
fn an_answer_that_brings_too_little_fails_the_request() {
    let scene = Scene::new();
    scene.arrives(&scene.forge_response(b"1234567")).unwrap();
    assert_eq!(statuses(&scene.end.sent()), [(1, CompletionStatus::RemoteOperation)]);
    assert_eq!(scene.open.bytes(), [0; 64]);
}

#[test]
fn a_wire_that_panics_is_an_error_and_what_has_come_is_delivered() {
    let scene = Scene::new();
    scene.forger.panics.store(true, Ordering::SeqCst);
    let send = scene.forge(0, 0, 0, 2, b"ab");
    assert_eq!(scene.arrives(&send), Err(Error::WirePanicked { call: "poll" }));
    assert_eq!(statuses(&scene.end.received()), [(3, CompletionStatus::Success)]);
    assert_eq!(&scene.open.bytes()[..2], b"ab");
    scene.forger.panics.store(false, Ordering::SeqCst);
    assert_eq!(scene.device.progress(), Err(Error::WirePanicked { call: "send" }));
    assert!(scene.device.is_lost(1));
    assert_eq!(scene.device.progress(), Ok(0));
}

#[test]
fn a_peer_that_reads_without_taking_in_is_not_served() {
    const LENGTH: u64 = 4 << 20;
    let scene = Scene::new();
    let buffer = scene.end.buffer(LENGTH as usize);
    let RemoteAddress { address, key } = buffer.region.at(0);
    let mut refused = None;
    for psn in 0..100 {
        let read = scene.forge_nth(psn, 4, address, key.to_u32(), LENGTH, b"");
        refused = scene.arrives(&read).err().or(refused);
    }
    let limit = (64 << 20) + 2 * (LENGTH + 64);
    let waits = scene.forger.unsent_bytes(1) as u64;
    assert!(waits <= 9 << 20, "{waits} bytes wait beside those of the device");
    let Some(Error::Unsent { process: 1, bytes, limit: reported }) = refused else {
        panic!("{refused:?}");
    };
    assert!((limit + 1..=limit + LENGTH + 64).contains(&bytes) && reported == limit);
    assert_eq!(scene.end.queue_pair.state(), QueuePairState::ReadyToSend);
}

#[test]
fn datagrams_to_a_peer_that_takes_nothing_in_are_refused_at_the_limit() {
    let scene = Scene::new();
    let limit = (64 << 20) + 2 * ((4 << 20) + 64);
    let long = vec![0; 1 << 20];
    let sent = (0..200).take_while(|_| scene.device.send_datagram(1, &[&long]).is_ok()).count();
    // The rail has taken up to 8 MiB.
    assert!((7..=9).contains(&(sent - (limit >> 20))), "{sent}");
    assert!(matches!(scene.device.progress(), Err(Error::Unsent { process: 1, .. })));
    // The error is returned once.
    assert_eq!(scene.device.progress(), Ok(0));
}

#[test]
fn a_datagram_that_no_packet_holds_is_refused() {
    let scene = Scene::new();
    let long = vec![0; MAX_PACKET];
    assert_eq!(scene.device.send_datagram(1, &[&long[1..]]), Ok(()));
    let limit = MAX_PACKET as u64 - 1;
    assert_eq!(
        scene.device.send_datagram(1, &[&long]),
        Err(Error::LimitExceeded { what: "datagram", requested: limit + 1, limit })
    );
}

proptest! {
    #[test]
    fn memory_that_no_peer_may_touch_stays(
        opcode in 0..8u8, offset in 0u64..200, in_open: bool, right_key: bool,
        length in prop_oneof![0u64..100, Just(8), Just(u64::MAX)], payload in 0..100usize,
    ) {
        let scene = Scene::new();
        scene.closed.fill(&[7; 64]);
        let region = if in_open { &scene.open } else { &scene.closed }.region.at(0);
        let key = if right_key { region.key.to_u32() } else { 12345 };
        let address = region.address.wrapping_add(offset).wrapping_sub(64);
        let payload = vec![1; payload];
        let _ = scene.arrives(&scene.forge(opcode, address, key, length, &payload));
        prop_assert_eq!(scene.closed.bytes(), [7; 64]);
        let may_write = in_open && right_key || opcode < 2;
        prop_assert!(may_write || scene.open.bytes() == [0; 64]);
    }

    #[test]
    fn changed_and_cut_packets_do_not_panic(
        opcode in 0..8u8, at in 0usize..80, to: u8, cut in 0usize..80,
    ) {
        let scene = Scene::new();
        let RemoteAddress { address, key } = scene.open.region.at(0);
        let mut packet = scene.forge(opcode, address, key.to_u32(), 8, &[2; 8]);
        let at = at % packet.len();
        packet[at] = to;
        packet.truncate(packet.len().max(cut) - cut.min(packet.len()));
        let _ = scene.arrives(&packet);
        let _ = scene.arrives(&packet);
    }
}
